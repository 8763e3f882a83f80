"""Modules that are made without memory: only their sizes are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

#: what a module starts its weights with; on tensors without memory there is nothing to start
RANDOM = ("normal_", "uniform_")


@contextmanager
def on_meta_device() -> Iterator[None]:
    """Modules made inside take no memory, however large their settings say they are."""
    with torch.device("meta"), _NoRandomStart():
        yield


class _NoRandomStart(TorchFunctionMode):
    """Leaves random numbers out: for meta tensors torch would load its compiler to draw them."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if getattr(func, "__name__", "") in RANDOM:
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))
