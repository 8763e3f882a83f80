"""The lock on the folder of a run, with errors for people who train."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from genpool.disk.lock import (
    HOLDER,
    LOCK,
    FolderInUse,
    held_folder,
    remove_lock,
    require_unheld,
)
from genpool.errors import TrainingError

__all__ = ["HOLDER", "LOCK", "remove_lock", "require_unlocked", "run_lock"]


@contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Holds the lock of an existing folder; raises TrainingError where another process does."""
    with ExitStack() as held:
        with _in_words(folder):
            held.enter_context(held_folder(folder))
        yield


def require_unlocked(folder: Path) -> None:
    """Raises TrainingError where another process holds the lock; writes nothing."""
    with _in_words(folder):
        require_unheld(folder)


@contextmanager
def _in_words(folder: Path) -> Iterator[None]:
    try:
        yield
    except FolderInUse as holder:
        raise TrainingError(
            f"{folder} is in use: {holder} is writing a run there. Wait until it has ended, or "
            "give another folder: --out"
        ) from None
    except OSError as error:
        raise TrainingError(
            f"{folder} cannot be locked: {error.strerror or error}. Give another folder: --out"
        ) from error
