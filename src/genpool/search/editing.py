"""Changes of an index that exists: rows deleted by their ids, lists for an approximate search."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genpool.disk.atomic import folder_identity
from genpool.errors import InputError, MissingExtraError
from genpool.search import approximate
from genpool.search.earlier_rows import copy_rows
from genpool.search.index_files import IndexFiles, read_index
from genpool.search.index_folder import folder_writer
from genpool.search.row_values import Scalar


def delete_rows(folder: str | Path, ids: Iterable[str | int]) -> int:
    """Deletes rows of an index; the folder is replaced when the new one is complete.

    Args:
        folder: an index with ids (`genpool encode --id COLUMN`).
        ids: the ids of the rows; every row with such an id is deleted. 5 and "5" are the same.

    Returns:
        How many rows were deleted.

    Raises:
        InputError: the index has no ids, or an id is not in it; then nothing is deleted.
        FolderError: the folder is no index, or cannot be written.

    Example:
        >>> delete_rows("index", ["a17", "a18"])
        2
    """
    identity = folder_identity(Path(folder))
    files = read_index(folder)
    if files.card.id is None:
        raise InputError(
            f"{folder} has no ids, by which rows are deleted: encode with --id COLUMN."
        )
    wanted = {str(name) for name in ids}
    deleted = _rows_with(files, wanted)  # (rows,)
    if not deleted.any():
        return 0
    with folder_writer(folder, files.card, identity) as add:
        copy_rows(files, add, lambda first, last: ~deleted[first:last])
        del files  # Windows does not replace a folder whose files are mapped
    return int(deleted.sum())


def _rows_with(files: IndexFiles, wanted: set[str]) -> NDArray[np.bool_]:
    """Returns which rows have these ids (rows,)."""
    place = files.card.columns.index(str(files.card.id))
    chosen = np.zeros(files.card.rows, np.bool_)
    found: set[str] = set()
    for first in range(0, files.card.rows, approximate.BLOCK_ROWS):
        last = min(first + approximate.BLOCK_ROWS, files.card.rows)
        names = [id_text(values[place]) for values in files.row_values(first, last)]
        chosen[first:last] = [name in wanted for name in names]
        found.update(wanted.intersection(names))
    missing = sorted(wanted - found)
    if missing:
        raise InputError(
            f"{files.path} has no row with the id {', '.join(map(repr, missing[:5]))}"
            f"{', ...' if len(missing) > 5 else ''}; nothing was deleted."
        )
    return chosen


def id_text(value: Scalar) -> str:
    """Returns an id as text: 5, 5.0 and "5" are one id."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def build_lists(folder: str | Path) -> int:
    """Gives an index the lists of an approximate search, which makes a search of many rows faster.

    `genpool encode` does so from a million rows on, where FAISS is installed. The folder is
    replaced when the new one is complete.

    Args:
        folder: an index.

    Returns:
        The number of lists.

    Raises:
        MissingExtraError: FAISS is not installed.
        InputError: the index is empty.
        FolderError: the folder is no index, or cannot be written.

    Example:
        >>> build_lists("index")
        1000
    """
    if not approximate.has_faiss():
        raise MissingExtraError("an approximate search", "faiss")
    identity = folder_identity(Path(folder))
    files = read_index(folder)
    if not files.card.rows:
        raise InputError(f"{folder} is empty; there is nothing to make lists of.")
    with folder_writer(folder, replace(files.card, lists=1), identity) as add:
        copy_rows(files, add)
        del files
    return read_index(folder).card.lists
