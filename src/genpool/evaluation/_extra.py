"""The packages behind the numbers (scipy, scikit-learn, matplotlib) are an extra of genpool."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from genpool.errors import MissingExtraError


@contextmanager
def train_extra(feature: str) -> Iterator[None]:
    """Put an import under this, and a missing package is answered with its pip line.

    Only a package that is absent is answered so: one that is present and fails to load keeps its
    own message, because installing it again would not mend it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(feature, "train") from error
