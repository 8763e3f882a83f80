"""Locks between processes: for the moment of a replacement, or for a whole run.

The operating system holds a lock for its process (see the package filelock) and releases it when
the process ends, in whatever way, so a killed process never blocks the next one.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from genpool.errors import GenpoolError

#: longest wait for another process; what is done under the lock takes well below a second
LOCK_SECONDS = 120
POLL_SECONDS = 0.005
#: in a folder that is held for a whole run: the locked file, and the one that says who holds it
LOCK, HOLDER = ".lock", ".lock.json"


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
def held_folder(folder: Path, error: type[GenpoolError], option: str = "--out") -> Iterator[None]:
    """Creates a folder if need be and holds its lock; `folder_errors` says what is raised."""
    since = datetime.now(UTC).isoformat(timespec="seconds")
    holder = {"process": os.getpid(), "host": platform.node(), "since": since}
    with ExitStack() as held:
        with folder_errors(folder, error, option):
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(FileLock(folder / LOCK, timeout=0).acquire())
            # Before the release: after it, the file may be that of the next holder.
            held.callback(_remove, folder / HOLDER)
            (folder / HOLDER).write_text(json.dumps(holder), encoding="utf-8", newline="\n")
        yield


def require_unheld(folder: Path) -> None:
    """Raises Timeout where another process holds the lock; writes nothing."""
    if (folder / LOCK).is_file():
        with FileLock(folder / LOCK, timeout=0).acquire():
            pass


@contextmanager
def folder_errors(folder: Path, error: type[GenpoolError], option: str = "--out") -> Iterator[None]:
    """Raises `error` for a folder that another process holds, or that cannot be used.

    `option` is that of the command line by which another folder is given.
    """
    try:
        yield
    except Timeout:
        try:
            holder = json.loads((folder / HOLDER).read_text(encoding="utf-8"))
            name = f"process {holder['process']} on {holder['host']} (since {holder['since']})"
        except (OSError, ValueError, KeyError, TypeError):  # it is just starting, or ending
            name = "another process"
        raise error(
            f"{folder} is in use: {name} is writing there. Wait until it has ended, or give "
            f"another folder: {option}"
        ) from None
    except OSError as problem:  # such as a name that is too long, or a folder that is read-only
        is_file = isinstance(problem, FileExistsError)
        reason = (
            "is a file; expected a folder"
            if is_file
            else f"cannot be used: {problem.strerror or problem}"
        )
        raise error(f"{folder} {reason}. Give another folder: {option}") from problem


def remove_lock(folder: Path) -> None:
    """Removes the lock file of a finished run, which nobody may write to any more."""
    _remove(folder / LOCK)


def _remove(path: Path) -> None:
    with suppress(OSError):  # another process may be looking at it, to be refused
        path.unlink(missing_ok=True)
