"""Writing an index, completely or not at all: new, extended, without some rows, with lists."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genpool.disk.arrays import growing_array, growing_rows
from genpool.disk.atomic import atomic_folder, folder_identity, read_consistently
from genpool.errors import FolderError, InputError, MissingExtraError
from genpool.model.reference import ModelReference
from genpool.search import approximate
from genpool.search import index_card as names
from genpool.search.index_card import INDEX, IndexCard
from genpool.search.nearest import UNIT_TOLERANCE, Vectors
from genpool.search.search import FLOAT, SearchIndex
from genpool.search.where import Scalar

#: rows from which on `genpool encode` makes lists, if FAISS is installed
MIN_ROWS = 1_000_000
#: rows that are copied or compared at a time
BLOCK_ROWS = 5_000

#: adds n sentences, their vectors (n, dim), and the values of their columns, if there are any
Write = Callable[..., None]
#: adds the bytes of sentences, vectors, and the lines of columns
AddRows = Callable[[Sequence[bytes], Vectors, Sequence[bytes]], None]


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
    card, identity = IndexCard(0, dim, True, model, tuple(columns), id), None
    if append:
        identity, card = _require_same_kind(Path(output), card)
    rows = card.rows
    with _folder_writer(output, card, identity, np.arange(rows)) as add:

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
            lines = [json.dumps([to_scalar(value) for value in row]) + "\n" for row in values]
            add(data, vectors, [line.encode("ascii") for line in lines])
            rows += len(sentences)

        yield write


@contextmanager
def _folder_writer(
    output: str | Path, card: IndexCard, identity: object, kept: NDArray[np.int64]
) -> Iterator[AddRows]:
    """Yields a function that adds rows to the `kept` ones (n,) of the index that is there.

    At the end the files are a complete folder, whose rows are counted anew; with `lists` above 0,
    or `MIN_ROWS`, it has lists. `identity` is the `folder_identity` of the index whose rows are
    kept: if it is another one at the end, another process has written it, and nothing is replaced.
    """

    def check(target: Path) -> None:
        _require_index(target)
        if identity is not None and folder_identity(target) != identity:
            raise FolderError(
                f"{target} was changed by another process in the meantime; run the command again."
            )

    rows, normalized = 0, True
    with atomic_folder(output, "the index", check) as fresh:
        with ExitStack() as files:
            add_vectors = files.enter_context(
                growing_array(fresh / names.VECTORS, FLOAT, (card.dim,))
            )
            names_of_rows = [(names.SENTENCES, names.OFFSETS), names.VALUE_FILES]
            add_bytes = [
                files.enter_context(growing_rows(fresh / data, fresh / offsets))
                for data, offsets in names_of_rows[: 2 if card.columns else 1]
            ]

            def add(sentences: Sequence[bytes], vectors: Vectors, lines: Sequence[bytes]) -> None:
                nonlocal rows, normalized
                add_vectors(vectors)
                for add_rows, data in zip(add_bytes, (sentences, lines), strict=False):
                    add_rows(data)
                squares = np.einsum("ij,ij->i", vectors, vectors)  # (n,)
                normalized &= bool(((squares == 0) | (abs(squares - 1) <= UNIT_TOLERANCE)).all())
                rows += len(sentences)

            if len(kept):
                _copy_rows(SearchIndex.open(output), kept, add)
            yield add
        lists = 0
        if rows and (card.lists or rows >= MIN_ROWS) and approximate.has_faiss():
            lists = approximate.write_lists(fresh, np.load(fresh / names.VECTORS, mmap_mode="r"))
        INDEX.write(fresh, asdict(replace(card, rows=rows, normalized=normalized, lists=lists)))


def _copy_rows(index: SearchIndex, rows: NDArray[np.int64], add: AddRows) -> None:
    # A function, so that its index is closed: Windows does not replace a folder of mapped files.
    for first in range(0, len(rows), BLOCK_ROWS):
        block = rows[first : first + BLOCK_ROWS]
        sentences, lines = zip(*map(index.row_bytes, block.tolist()), strict=True)
        add(sentences, np.asarray(index.vectors[block]), lines)


def require_finite(vectors: Vectors, first_row: int) -> None:
    """Raises InputError with the first row of vectors (n, dim) that has NaN or infinity."""
    damaged = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(damaged):
        raise InputError(
            f"the vector of row {first_row + int(damaged[0])} is not finite; "
            "expected finite values: was the model damaged in training?"
        )


def _require_index(target: Path) -> None:
    """Raises FolderError if a folder is something other than an index, which may be replaced."""
    foreign = sorted(file.name for file in target.iterdir() if file.name not in INDEX.files)
    if foreign:
        raise FolderError(
            f"{target} contains something else, which the index would replace: "
            f"{', '.join(foreign[:5])}. Choose a new or empty folder."
        )
    IndexCard.read(target)


def to_scalar(value: object) -> Scalar:
    """Returns a value of a table as JSON has it; a date, for example, becomes text.

    What tables have for an empty cell, None and NaN, is None.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value if math.isfinite(value) else str(value)
    return str(value)


def _require_same_kind(output: Path, card: IndexCard) -> tuple[object, IndexCard]:
    """Returns the identity of a folder that is extended, and the card of its index.

    InputError unless model, dimension and columns are those of `card`, which is returned where
    there is no index.
    """
    identity = read_consistently(output, lambda: folder_identity(output))
    if identity is None:
        return "absent", card  # an index that is there at the end is of another process
    if output.is_dir() and not any(output.iterdir()):
        return identity, card
    index = SearchIndex.open(output)
    there = index.card
    card.model.require_same(there.model, output)
    if (there.dim, there.columns, there.id) != (card.dim, card.columns, card.id):
        kinds = [
            f"{one.dim} dimensions, the columns {', '.join(one.columns) or 'none'}, ids: {one.id}"
            for one in (there, card)
        ]
        raise InputError(
            f"{output} has {kinds[0]}; got {kinds[1]}. Rows of one index have the same."
        )
    return index.identity, replace(card, rows=there.rows, lists=there.lists)


def delete_rows(folder: str | Path, ids: Iterable[str | int]) -> int:
    """Deletes rows of an index; the folder is replaced when the new one is complete.

    Args:
        folder: an index with ids (`genpool encode --id COLUMN`).
        ids: the ids of the rows; every row with such an id is deleted. 5 and "5" are the same.

    Returns:
        How many rows were deleted.

    Raises:
        InputError: the index has no ids, or an id is not in it; then nothing is deleted.
        FolderError: the folder is not an index, or cannot be written.

    Example:
        >>> delete_rows("index", ["a17", "a18"])
        2
    """
    index = SearchIndex.open(folder)
    card, identity = index.card, index.identity
    if card.id is None:
        raise InputError(
            f"{folder} has no ids, by which rows are deleted: encode with --id COLUMN."
        )
    place, wanted = card.columns.index(card.id), {str(name) for name in ids}
    names = [_id_text(values[place]) for values in index.all_values()]
    del index  # Windows does not replace a folder whose files are mapped
    kept = np.array([row for row, name in enumerate(names) if name not in wanted], np.int64)
    missing = sorted(wanted.difference(names))
    if missing:
        raise InputError(
            f"{folder} has no row with the id {', '.join(map(repr, missing[:5]))}"
            f"{', ...' if len(missing) > 5 else ''}; nothing was deleted."
        )
    if wanted:
        with _folder_writer(folder, card, identity, kept):
            pass
    return card.rows - len(kept)


def _id_text(value: Scalar) -> str:
    """Returns an id as text: 5, 5.0 and "5" are one id."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


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
        FolderError: the folder is not an index, or cannot be written.

    Example:
        >>> build_lists("index")
        1000
    """
    if not approximate.has_faiss():
        raise MissingExtraError("an approximate search", "faiss")
    index = SearchIndex.open(folder)
    card, identity = index.card, index.identity
    del index
    if not card.rows:
        raise InputError(f"{folder} is empty; there is nothing to make lists of.")
    with _folder_writer(folder, replace(card, lists=1), identity, np.arange(card.rows)):
        pass
    return IndexCard.read(Path(folder)).lists
