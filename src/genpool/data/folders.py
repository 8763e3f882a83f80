"""Finding the file of each split in the folder of a data set, and listing what is there instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from genpool.disk.files import COMPRESSED
from genpool.errors import DataError

_MAX_NAMES = 12


def list_names(folder: Path) -> str:
    """Returns the names in a folder for an error message, only some of them if there are many."""
    names = sorted(entry.name for entry in folder.iterdir())
    rest = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return (", ".join(names[:_MAX_NAMES]) or "nothing") + rest


def require_existing(path: str | Path) -> Path:
    """Returns the path; raises DataError if nothing is there, listing the nearest folder."""
    path = Path(path)
    try:
        if path.exists():
            return path
        parent = next(folder for folder in path.absolute().parents if folder.is_dir())
    except OSError as error:  # a name that is too long, or a folder that may not be entered
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None
    raise DataError(f"there is no such file or folder; {parent} holds: {list_names(parent)}", path)


def find_split_files(path: str | Path, names: Mapping[str, Sequence[str]]) -> dict[str, Path]:
    """Returns the file of each split that is present.

    Args:
        path: the folder of a data set, or one of its files.
        names: the file names of each split, the preferred one first. A file may carry the suffix
            of a compression; the plain file is preferred.

    Raises:
        DataError: none of the files is there.
    """
    path = require_existing(path)
    folder, file = (path, None) if path.is_dir() else (path.parent, path)
    files: dict[str, Path] = {}
    for split, choices in names.items():
        candidates = [folder / (name + end) for name in choices for end in ("", *COMPRESSED)]
        present = [candidate for candidate in candidates if candidate.is_file()]
        if file is not None:
            present = [candidate for candidate in present if candidate == file]
        if present:
            files[split] = present[0]
    if not files:
        expected = ", ".join(name for choices in names.values() for name in choices)
        instead = f"it holds: {list_names(path)}" if file is None else "this file is none of them"
        ends = ", ".join(COMPRESSED)
        raise DataError(f"looked for {expected} (or these with {ends}), but {instead}", path)
    return files
