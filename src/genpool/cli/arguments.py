"""Arguments that several commands read alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from genpool.errors import InputError

Argument = TypeVar("Argument")


def split_names(names: str | None) -> list[str]:
    """Returns the names of an option such as "a,b", without the spaces around them.

    Raises:
        InputError: one of them is empty.
    """
    if names is None:
        return []
    found = [name.strip() for name in names.split(",")]
    if not all(found):
        raise InputError(f"got {names!r}; expected names with commas between them, such as a,b.")
    return found


def split_model_argument(last: str, paths: Sequence[Argument]) -> tuple[Argument | None, Argument]:
    """Returns the folder of a model, None for the embedded one, and the argument after it.

    Args:
        last: the name of the last argument in the usage of the command, for messages.
        paths: the arguments, [MODEL] LAST.

    Raises:
        InputError: there are more than two, or none.
    """
    if not 1 <= len(paths) <= 2:
        raise InputError(f"got {len(paths)} paths; expected [MODEL] {last}.")
    return paths[0] if len(paths) == 2 else None, paths[-1]
