"""Reading the folder of an index: everything is checked against index.json, and mapped."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genpool.disk.arrays import ByteRows, map_array
from genpool.disk.atomic import read_consistently
from genpool.errors import FolderError, InputError
from genpool.search.approximate import LIST_FILES, ListFiles
from genpool.search.index_card import CARD, IndexCard
from genpool.search.row_values import Scalar, decode_rows

VECTORS, SENTENCES, OFFSETS = "vectors.npy", "sentences.utf8", "offsets.npy"
VALUES, VALUE_OFFSETS = "columns.jsonl", "column_offsets.npy"
OWN_FILES = (CARD, VECTORS, SENTENCES, OFFSETS)
#: files that an index has only if index.json says so
OPTIONAL_FILES = (VALUES, VALUE_OFFSETS, *LIST_FILES)
FLOAT = "<f4"
#: vectors count as normalized if their squared length differs from 1 by no more than this
UNIT_TOLERANCE = 1e-5

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class IndexFiles:
    """The checked files of an index, mapped into memory.

    Attributes:
        path: the folder, for messages.
        card: the content of index.json.
        vectors: (rows, dim).
        sentences: the sentences in UTF-8.
        values: the columns, a JSON array per row; None without columns.
        lists: the lists of an approximate search; None without them.
    """

    path: Path
    card: IndexCard
    vectors: Vectors
    sentences: ByteRows
    values: ByteRows | None = None
    lists: ListFiles | None = None

    def sentence(self, row: int) -> str:
        """Returns the sentence of a row.

        Raises:
            InputError: there is no such row.
            FolderError: the files are damaged.
        """
        self.require_row(row)
        try:
            return self.sentences.read(row, row + 1).decode("utf-8", "surrogatepass")
        except ValueError as error:
            raise self._damaged(f"the sentence of row {row}", error) from None

    def row_values(self, first: int, last: int) -> list[list[Scalar]]:
        """Returns the values of the rows from `first` to `last`, which is not included.

        Raises:
            FolderError: the files are damaged.
        """
        if self.values is None:
            return [[] for _ in range(first, last)]
        try:
            data = self.values.read(first, last)
            return decode_rows(data, last - first, len(self.card.columns))
        except (ValueError, RecursionError) as error:
            raise self._damaged(f"the columns of rows {first} to {last - 1}", error) from None

    def require_row(self, row: int) -> None:
        """Raises InputError if there is no such row."""
        if not 0 <= row < self.card.rows:
            raise InputError(f"row is {row}; the index has rows 0 to {self.card.rows - 1}.")

    def _damaged(self, what: str, error: Exception) -> FolderError:
        return FolderError(f"{self.path} is damaged: {what} cannot be read: {error}.")


def read_index(path: str | Path) -> IndexFiles:
    """Checks a folder against its index.json, and maps its files.

    Raises:
        FolderError: the folder is missing, incomplete, damaged, or no index.
    """
    folder = Path(path)
    try:
        return read_consistently(folder, lambda: _map_files(folder))
    except OSError as error:
        raise FolderError(f"{folder} cannot be read: {error}") from error


def file_names(card: IndexCard) -> list[str]:
    """Returns the names of the files that an index with this card has."""
    values = (VALUES, VALUE_OFFSETS) if card.columns else ()
    return [*OWN_FILES, *values, *(LIST_FILES if card.lists else ())]


def _map_files(folder: Path) -> IndexFiles:
    card = IndexCard.read(folder)
    missing = [name for name in file_names(card) if not (folder / name).is_file()]
    if missing:
        raise FolderError(f"{folder} is incomplete: {' and '.join(missing)} missing.")
    vectors = map_array(folder / VECTORS, FLOAT, (card.rows, card.dim), CARD)
    sentences = ByteRows.map(folder / SENTENCES, folder / OFFSETS, card.rows, CARD)
    values = lists = None
    if card.columns:
        values = ByteRows.map(folder / VALUES, folder / VALUE_OFFSETS, card.rows, CARD)
    if card.lists:
        lists = ListFiles.map(folder, card.lists, card.rows, card.dim, CARD)
    return IndexFiles(folder, card, vectors, sentences, values, lists)
