"""Locks between processes: for the moment of a replacement, or for a whole run.

The operating system holds a lock for its process (see the package filelock) and releases it when
the process ends, in whatever way, so a killed process never blocks the next one.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

#: longest wait for another process; what is done under the lock takes well below a second
LOCK_SECONDS = 120
POLL_SECONDS = 0.005
#: in a folder that is held for a whole run: the locked file, and the one that says who holds it
LOCK, HOLDER = ".lock", ".lock.json"


class FolderInUse(Exception):
    """Another process holds the folder; the message says which."""


def lock_path(target: Path) -> Path:
    """Returns the path of the file that `exclusive` locks."""
    return target.with_name(f".{target.name}.lock")


@contextmanager
def exclusive(target: Path) -> Iterator[None]:
    """Lets no other process work on `target` inside; OSError if one does for too long."""
    path = lock_path(target)
    # Any user who may write into the folder may wait for the lock.
    with FileLock(path, timeout=LOCK_SECONDS, mode=0o666, poll_interval=POLL_SECONDS):
        try:
            yield
        finally:
            # While it is held: whoever waits for a file without a name starts over. Windows keeps
            # an open file; there, filelock removes it afterwards.
            with suppress(OSError):
                path.unlink()


@contextmanager
def held_folder(folder: Path) -> Iterator[None]:
    """Holds the lock of an existing folder; FolderInUse if another process holds it."""
    since = datetime.now(UTC).isoformat(timespec="seconds")
    holder = {"process": os.getpid(), "host": platform.node(), "since": since}
    with _locked(folder):
        try:
            (folder / HOLDER).write_text(json.dumps(holder), encoding="utf-8")
            yield
        finally:
            # Before the release: after it, the file may be that of the next holder.
            with suppress(OSError):
                (folder / HOLDER).unlink(missing_ok=True)


def require_unheld(folder: Path) -> None:
    """Raises FolderInUse where another process holds the lock; writes nothing."""
    if (folder / LOCK).is_file():
        with _locked(folder):
            pass


def remove_lock(folder: Path) -> None:
    """Removes the lock file of a finished run, which nobody may write to any more."""
    with suppress(OSError):  # another process may be looking at it, to be refused
        (folder / LOCK).unlink(missing_ok=True)


def _locked(folder: Path) -> AbstractContextManager[object]:
    """Acquires the lock of a folder; leaving the context releases it."""
    try:
        return FileLock(folder / LOCK, timeout=0).acquire()
    except Timeout:
        try:
            holder = json.loads((folder / HOLDER).read_text(encoding="utf-8"))
            name = f"process {holder['process']} on {holder['host']} (since {holder['since']})"
        except (OSError, ValueError, KeyError, TypeError):  # it is just starting, or ending
            name = "another process"
        raise FolderInUse(name) from None
