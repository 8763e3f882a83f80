"""A lock on a folder that is held for a whole run: two processes never write it at the same time.

The operating system holds the lock for the process (see the package filelock) and releases it when
the process ends, in whatever way, so a killed run never blocks the next one. A file beside it says
who holds it, for the error that a second process gets.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

LOCK, HOLDER = ".lock", ".lock.json"


class FolderInUse(Exception):
    """Another process holds the folder; the message says which."""


@contextmanager
def held_folder(folder: Path) -> Iterator[None]:
    """Holds the lock of an existing folder.

    Raises:
        FolderInUse: another process holds it.
        OSError: the folder cannot be locked.
    """
    lock = _acquire(folder)
    holder = folder / HOLDER
    try:
        holder.write_text(json.dumps(_this_process()), encoding="utf-8", newline="\n")
        yield
    finally:
        # Before the release: after it, the file may be that of the next holder.
        with suppress(OSError):
            holder.unlink(missing_ok=True)
        lock.release()


def require_unheld(folder: Path) -> None:
    """Raises FolderInUse where another process holds the lock; writes nothing."""
    if (folder / LOCK).is_file():
        _acquire(folder).release()


def remove_lock(folder: Path) -> None:
    """Removes the lock file of a finished run, which nobody may write to any more."""
    with suppress(OSError):  # another process may be looking at it, to be refused
        (folder / LOCK).unlink(missing_ok=True)


def _acquire(folder: Path) -> FileLock:
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise FolderInUse(_holder(folder)) from None
    return lock


def _this_process() -> dict[str, object]:
    return {
        "process": os.getpid(),
        "host": platform.node(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _holder(folder: Path) -> str:
    try:
        holder = json.loads((folder / HOLDER).read_text(encoding="utf-8"))
        return f"process {holder['process']} on {holder['host']} (since {holder['since']})"
    except (OSError, ValueError, KeyError, TypeError):  # it is just starting, or ending
        return "another process"
