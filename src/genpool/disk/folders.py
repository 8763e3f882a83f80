"""Reading a folder that another process may be replacing.

A folder is replaced by two renames, under a lock (`atomic_folder`):

    NAME -> .NAME.previous, .NAME.….saving -> NAME

Between them there is no folder, and a reader that opens one file after the other may meet both
versions.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from genpool.disk.file_kinds import resolve_links
from genpool.disk.lock import exclusive, lock_path
from genpool.errors import FolderError

#: times a folder is read before its writers are asked to wait
UNLOCKED_READS = 5

Content = TypeVar("Content")


def require_version(version: object, newest: int, path: Path) -> None:
    """Raises FolderError for a file whose format is newer than this genpool reads."""
    if type(version) is not int or not 1 <= version <= newest:
        allowed = "1" if newest == 1 else f"1 to {newest}"
        raise FolderError(
            f"{path} has format version {version!r}; this genpool reads {allowed}. "
            "A newer genpool wrote it: pip install --upgrade genpool."
        )


def read_consistently(path: str | Path, read: Callable[[], Content]) -> Content:
    """Returns `read()`, called again where the folder was replaced in the meantime.

    Args:
        path: the folder.
        read: reads the folder. An exception of it is raised only if the folder was not replaced
            while it ran.
    """
    folder = Path(path)
    for _ in range(UNLOCKED_READS):
        before = folder_identity(folder)
        if before is None and _is_being_replaced(folder):
            break
        try:
            content = read()
        except Exception:
            # A file that is missing or of another version can make a library raise anything: torch
            # has a RuntimeError for it.
            if before is not None and folder_identity(folder) == before:
                raise
        else:
            if folder_identity(folder) == before:
                return content
    return _read_locked(folder, read)


def recover(target: Path) -> None:
    """Restores the folder that a process left as `.NAME.previous` if it was killed in between."""
    if _is_lost(target):
        with exclusive(target):
            recover_locked(target)


def recover_locked(target: Path) -> None:
    """The same, for the process that has the lock."""
    if _is_lost(target):
        previous_path(target).rename(target)


def previous_path(target: Path) -> Path:
    """Returns the place of the old folder during the replacement."""
    return target.with_name(f".{target.name}.previous")


def _is_lost(target: Path) -> bool:
    return previous_path(target).is_dir() and not target.exists()


def _is_being_replaced(folder: Path) -> bool:
    target = resolve_links(folder)
    return previous_path(target).is_dir() or lock_path(target).exists()


def folder_identity(folder: Path) -> tuple[int, int, int] | None:
    """Returns what two versions of a folder differ in; None where no folder can be read."""
    try:
        status = folder.stat()
    except OSError:  # there is none, or its name is too long
        return None
    # The file system gives the number of a removed folder to a new one.
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _read_locked(folder: Path, read: Callable[[], Content]) -> Content:
    """Reads while all writers wait, if this process may write the lock file."""
    target = resolve_links(folder)
    if not _is_being_replaced(folder) and not target.exists():
        return read()  # raises what a missing folder raises, and leaves no lock file behind
    with suppress(OSError), exclusive(target):
        recover_locked(target)
        return read()
    return read()  # on a disk that is read-only, nobody replaces the folder
