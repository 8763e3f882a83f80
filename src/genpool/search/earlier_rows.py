"""The rows of an index that is extended, or from which rows are deleted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genpool.disk.atomic import folder_identity, recover, resolve_links
from genpool.errors import InputError
from genpool.search.index_card import IndexCard
from genpool.search.index_files import IndexFiles, Vectors, read_index

#: rows that are copied at a time
COPY_ROWS = 5_000
#: adds the bytes of sentences, vectors, and the lines of columns
AddRows = Callable[[Sequence[bytes], Vectors, Sequence[bytes]], None]


def copy_rows(
    files: IndexFiles, add: AddRows, keep: Callable[[int, int], NDArray[np.bool_]] | None = None
) -> None:
    """Adds the rows of an index.

    Args:
        files: the index.
        add: of `folder_writer`.
        keep: returns which of the rows from one number to another are kept. Default: None, all.
    """
    for first in range(0, files.card.rows, COPY_ROWS):
        last = min(first + COPY_ROWS, files.card.rows)
        kept = np.arange(first, last) if keep is None else first + np.flatnonzero(keep(first, last))
        sentences = [files.sentences.read(row, row + 1) for row in kept.tolist()]
        values = files.values
        lines = [] if values is None else [values.read(row, row + 1) for row in kept.tolist()]
        add(sentences, np.asarray(files.vectors[kept]), lines)


def open_earlier(output: Path, card: IndexCard) -> tuple[object, IndexFiles | None]:
    """Returns the identity and the files of the index that is extended, if there is one.

    Args:
        output: the folder.
        card: model, dimension and columns of the new rows.

    Raises:
        InputError: the index is of another model, dimension, or has other columns.
        FolderError: there is something other than an index.
    """
    recover(resolve_links(output))
    identity = folder_identity(output)
    if identity is None:
        return "absent", None  # an index that is there at the end is of another process
    if output.is_dir() and not any(output.iterdir()):
        return identity, None
    files = read_index(output)
    there = files.card
    if there.model.fingerprint != card.model.fingerprint:
        raise InputError(
            f"{output} was made with another model: {there.model}; this one is {card.model}. "
            "Extend it with that model, or encode everything again."
        )
    if (there.dim, there.columns, there.id) != (card.dim, card.columns, card.id):
        raise InputError(
            f"{output} has {there.dim} dimensions and {_describe_columns(there)}; got {card.dim} "
            f"and {_describe_columns(card)}. Rows of one index have the same."
        )
    return identity, files


def _describe_columns(card: IndexCard) -> str:
    names = ", ".join(card.columns) or "none"
    return f"the columns {names}" + (f" (ids: {card.id})" if card.id else "")
