"""Finding the file of each split in a data set's folder, and saying what is there instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from genpool.disk.files import COMPRESSED
from genpool.errors import DataError

_SHOWN = 12


def contents(folder: Path) -> str:
    """The names in a folder for an error message, a few of them if there are many."""
    names = sorted(entry.name for entry in folder.iterdir())
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (", ".join(names[:_SHOWN]) or "nothing") + more


def existing(path: str | Path) -> Path:
    """The path, which must be there; otherwise the error shows its nearest folder that is."""
    path = Path(path)
    if path.exists():
        return path
    parent = next(folder for folder in path.absolute().parents if folder.is_dir())
    raise DataError(f"there is no such file or folder; {parent} holds: {contents(parent)}", path)


def split_files(path: str | Path, names: Mapping[str, Sequence[str]]) -> dict[str, Path]:
    """The file of each split that is present, for a folder or for one of its files.

    `names` gives each split's file names, the preferred one first; each may carry a suffix of
    compression, the plain file being preferred. None at all is an error.
    """
    path = existing(path)
    folder, wanted = (path, None) if path.is_dir() else (path.parent, path)
    found: dict[str, Path] = {}
    for split, choices in names.items():
        candidates = [folder / (name + end) for name in choices for end in ("", *COMPRESSED)]
        present = [file for file in candidates if file.is_file()]
        if wanted is not None:
            present = [file for file in present if file == wanted]
        if present:
            found[split] = present[0]
    if not found:
        looked = ", ".join(name for choices in names.values() for name in choices)
        instead = f"it holds: {contents(path)}" if wanted is None else "this file is none of them"
        ends = ", ".join(COMPRESSED)
        raise DataError(f"looked for {looked} (or these with {ends}), but {instead}", path)
    return found
