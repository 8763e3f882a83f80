"""Arguments that several commands read alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from genpool.errors import InputError

Given = TypeVar("Given")


def split_model_argument(last: str, paths: Sequence[Given]) -> tuple[Given | None, Given]:
    """[MODEL] LAST: the folder of a model, None for the one inside, and what comes after it."""
    if not 1 <= len(paths) <= 2:
        raise InputError(f"got {len(paths)} paths; expected [MODEL] {last}.")
    return paths[0] if len(paths) == 2 else None, paths[-1]
