"""What is in the place of an output: only regular files and folders may ever be replaced."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

FILE, FOLDER = "a file", "a folder"
_KINDS = {
    stat.S_IFREG: FILE,
    stat.S_IFDIR: FOLDER,
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a named pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
}


def kind_of(path: Path) -> str | None:
    """Returns the kind of what a path leads to, links followed, or None if there is nothing."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    return _KINDS.get(stat.S_IFMT(mode), "a special file")


def replaces(path: str | Path) -> bool:
    """Returns whether an output at `path` replaces something: a file, or a folder with content."""
    place = Path(path)
    kind = kind_of(place)
    return any(place.iterdir()) if kind == FOLDER else kind is not None


def resolve_links(path: Path) -> Path:
    """Returns the absolute path that links lead to.

    Raises:
        OSError: the links lead in a circle.
    """
    try:
        return path.resolve()
    except RuntimeError:  # what Python before 3.13 raises for a circle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
