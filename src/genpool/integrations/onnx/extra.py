"""onnx, onnxruntime and onnxscript are an extra of genpool."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from genpool.errors import MissingExtraError


@contextmanager
def onnx_extra(feature: str) -> Iterator[None]:
    """Put an import under this, and a missing package is answered with its pip line."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(feature, "onnx") from error
