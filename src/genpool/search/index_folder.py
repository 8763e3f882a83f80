"""The folder of an index, and how it is written, completely or not at all.

    index.json            format, rows, dim, columns, and the model (see index_card.py)
    vectors.npy           the vectors (rows, dim), float32
    sentences.utf8        the sentences, one after the other, without separators
    offsets.npy           the start of each sentence in bytes (rows + 1,), int64; the last value is
                          the size of the file
    columns.jsonl         with columns: their values, a JSON array per row (see row_values.py)
    column_offsets.npy    the start of each of these lines, as above
    lists.bin, ...        with lists: an approximate search (see approximate.py)

Vectors and sentences are mapped into memory, not read; none of the files can contain a pickle.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np

from genpool.disk.arrays import growing_array, growing_rows
from genpool.disk.atomic import atomic_folder, folder_identity
from genpool.errors import FolderError, InputError
from genpool.search import approximate
from genpool.search.earlier_rows import AddRows, copy_rows, open_earlier
from genpool.search.index_card import IndexCard, ModelReference
from genpool.search.index_files import (
    FLOAT,
    OFFSETS,
    OPTIONAL_FILES,
    OWN_FILES,
    SENTENCES,
    UNIT_TOLERANCE,
    VALUE_OFFSETS,
    VALUES,
    VECTORS,
    Vectors,
)
from genpool.search.row_values import encode_rows


class Write(Protocol):
    """Adds n sentences, their vectors (n, dim), and the values of their columns."""

    def __call__(
        self, sentences: list[str], vectors: Vectors, values: Sequence[Sequence[object]] = (), /
    ) -> None: ...


def is_folder_name(output: str | Path) -> bool:
    """Returns whether an output path means a folder: it ends in "/", or its name has no suffix.

    Example:
        >>> is_folder_name("index"), is_folder_name("vectors.npy")
        (True, False)
    """
    # "-" is standard output elsewhere, and ".npy" a slip: neither is the name of a folder.
    plain = Path(output).suffix == "" and not Path(output).name.startswith((".", "-"))
    return str(output).endswith(("/", os.sep)) or plain


@contextmanager
def index_writer(
    output: str | Path,
    dim: int,
    model: ModelReference,
    columns: Sequence[str] = (),
    id: str | None = None,
    append: bool = False,
) -> Iterator[Write]:
    """Yields a function that adds sentences and their vectors; at the end the index appears.

    Args:
        output: the folder. An earlier index there is replaced when the new one is complete.
        dim: the dimension of the vectors.
        model: the model that they are made with.
        columns: the names of columns whose values are kept. Default: none.
        id: the one of `columns` that holds ids, by which rows can be deleted. Default: None.
        append: keep the rows of an earlier index, before the new ones. Default: False.

    Yields:
        write(sentences, vectors, values), with a list of n sentences, float32 vectors (n, dim) and,
        if there are columns, n rows of their values.

    Raises:
        InputError: vectors are of another shape, or not finite; or the earlier index is of another
            model, dimension, or has other columns.
        FolderError: there is something other than an index at `output`, or it cannot be written.

    Example:
        >>> with index_writer("index", encoder.output_dim, ModelReference.of(encoder)) as write:
        ...     write(sentences, encoder.encode(sentences))
    """
    if id is not None and id not in columns:
        raise InputError(f"the column of ids, {id!r}, is not among the columns {list(columns)}.")
    card = IndexCard(0, dim, True, model, tuple(columns), id)
    identity, earlier = open_earlier(Path(output), card) if append else (None, None)
    lists = 0 if earlier is None else earlier.card.lists
    with folder_writer(output, replace(card, lists=lists), identity) as add:
        rows = 0 if earlier is None else earlier.card.rows
        if earlier is not None:
            copy_rows(earlier, add)
        earlier = None  # Windows does not replace a folder whose files are mapped

        def write(
            sentences: list[str], vectors: Vectors, values: Sequence[Sequence[object]] = (), /
        ) -> None:
            nonlocal rows
            if vectors.shape != (len(sentences), dim):
                raise InputError(
                    f"got vectors of shape {vectors.shape} for {len(sentences)} sentences; "
                    f"expected ({len(sentences)}, {dim})."
                )
            widths = {len(row) for row in values} or {0}
            if card.columns and (len(values) != len(sentences) or widths != {len(card.columns)}):
                raise InputError(
                    f"got {len(values)} rows of {sorted(widths)} values for {len(sentences)} "
                    f"sentences; expected a value for each of the columns {list(card.columns)}."
                )
            require_finite(vectors, rows)
            # JSON tables can contain half a surrogate pair, which is not valid UTF-8.
            data = [sentence.encode("utf-8", "surrogatepass") for sentence in sentences]
            add(data, vectors, encode_rows(values) if card.columns else ())
            rows += len(sentences)

        yield write


@contextmanager
def folder_writer(
    output: str | Path, card: IndexCard, identity: object = None
) -> Iterator[AddRows]:
    """Yields a function that adds rows; at the end the files are a complete folder.

    Args:
        output: the folder.
        card: dimension, model, columns and lists; its rows are counted anew. With `lists` above 0,
            or a million rows or more, lists for an approximate search are made.
        identity: `folder_identity` of the index whose rows are kept; if it is another one at the
            end, another process has written it, and nothing is replaced. Default: None, whatever
            is there.
    """

    def check(target: Path) -> None:
        require_index(target)
        if identity is not None and folder_identity(target) != identity:
            raise FolderError(
                f"{target} was changed by another process in the meantime; run the command again."
            )

    rows, normalized = 0, True
    with atomic_folder(output, "the index", check) as fresh:
        values = (
            growing_rows(fresh / VALUES, fresh / VALUE_OFFSETS)
            if card.columns
            else nullcontext(lambda lines: None)
        )
        with (
            growing_array(fresh / VECTORS, FLOAT, (card.dim,)) as add_vectors,
            growing_rows(fresh / SENTENCES, fresh / OFFSETS) as add_sentences,
            values as add_values,
        ):

            def add(sentences: Sequence[bytes], vectors: Vectors, lines: Sequence[bytes]) -> None:
                nonlocal rows, normalized
                add_sentences(sentences)
                add_vectors(vectors)
                add_values(lines)
                squares = np.einsum("ij,ij->i", vectors, vectors)  # (n,)
                normalized &= bool(((squares == 0) | (abs(squares - 1) <= UNIT_TOLERANCE)).all())
                rows += len(sentences)

            yield add
        lists = 0
        if rows and (card.lists or rows >= approximate.MIN_ROWS) and approximate.has_faiss():
            lists = approximate.write_lists(fresh, np.load(fresh / VECTORS, mmap_mode="r"))
        replace(card, rows=rows, normalized=normalized, lists=lists).write(fresh)


def require_finite(vectors: Vectors, first_row: int) -> None:
    """Raises InputError with the first row of vectors (n, dim) that has NaN or infinity."""
    damaged = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(damaged):
        raise InputError(
            f"the vector of row {first_row + int(damaged[0])} is not finite; "
            "expected finite values: was the model damaged in training?"
        )


def require_index(target: Path) -> None:
    """Raises FolderError if a folder is something other than an index, which may be replaced."""
    own = {*OWN_FILES, *OPTIONAL_FILES}
    foreign = sorted(file.name for file in target.iterdir() if file.name not in own)
    if foreign:
        raise FolderError(
            f"{target} contains something else, which the index would replace: "
            f"{', '.join(foreign[:5])}. Choose a new or empty folder."
        )
    IndexCard.read(target)
