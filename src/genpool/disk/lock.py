"""One writer at a time for an output, among all processes that share its disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock

#: longest wait for another process; what is done under the lock takes well below a second
LOCK_SECONDS = 120
POLL_SECONDS = 0.005


def lock_path(target: Path) -> Path:
    """Returns the path of the file that is locked."""
    return target.with_name(f".{target.name}.lock")


@contextmanager
def exclusive(target: Path) -> Iterator[None]:
    """Waits until no other process works on `target`, and keeps all others waiting inside.

    A killed process loses its lock. The lock file is removed at the end.

    Raises:
        OSError: another process keeps the lock (TimeoutError), or the file cannot be made.
    """
    path = lock_path(target)
    # Any user who may write into the folder may wait for the lock.
    lock = FileLock(path, timeout=LOCK_SECONDS, mode=0o666)
    lock.acquire(poll_interval=POLL_SECONDS)
    try:
        yield
    finally:
        try:
            # While it is held: whoever waits for a file without a name starts over. Windows keeps
            # an open file; there, filelock removes it afterwards.
            with suppress(OSError):
                path.unlink()
        finally:
            lock.release()
