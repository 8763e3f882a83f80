"""An index: its files, mapped into memory, and the rows with the highest cosine.

    index.json            format, rows, dim, columns, and the model (see index_card.py)
    vectors.npy           the vectors (rows, dim), float32
    sentences.utf8        the sentences, one after the other, without separators
    offsets.npy           the start of each sentence in bytes (rows + 1,), int64; the last value is
                          the size of the file
    columns.jsonl         with columns: their values, a JSON array per row; any block of lines is
                          parsed in one call, a million rows in a second
    column_offsets.npy    the start of each of these lines, as above
    lists.bin, ...        with lists: an approximate search (see genpool.search.approximate)

Vectors and sentences are mapped, not read; none of the files can contain a pickle.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genpool.disk.arrays import ByteRows, map_array
from genpool.disk.atomic import folder_identity, read_consistently
from genpool.errors import FolderError, InputError
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.model import SentenceEncoder
from genpool.model.reference import ModelReference
from genpool.search import approximate
from genpool.search import index_card as names
from genpool.search.index_card import INDEX, IndexCard
from genpool.search.nearest import nearest_rows
from genpool.search.where import Scalar, parse_condition
from genpool.tensors.arrays import unit_rows

FLOAT = "<f4"
#: queries that share one pass over the rows, and rows whose columns are read at a time
QUERIES_PER_PASS, VALUE_ROWS = 64, 10_000


class Hit(NamedTuple):
    """A sentence that a search returned.

    Attributes:
        row: its row in the index, from 0.
        score: its cosine with the query, from -1 to 1.
        sentence: its text.
        values: the columns that the index keeps, by their names; empty without columns.
    """

    row: int
    score: float
    sentence: str
    values: Mapping[str, Scalar]


class SearchIndex:
    """The sentences of a folder made by `genpool encode`, searched by meaning.

    The vectors stay on disk, mapped into memory. The search is exact, except where the index has
    lists (`genpool index build`; from a million rows on). Use `SearchIndex.open` to open a folder.

    Attributes:
        path: the folder.
        card: what index.json says: rows, dimension, columns, and the model.
        vectors: the vectors of the sentences (rows, dim), float32.

    Example:
        >>> index = SearchIndex.open("index")
        >>> for hit in index.search("A dog runs.", top=3):
        ...     print(hit.score, hit.sentence)
    """

    def __init__(self, folder: str | Path, encoder: SentenceVectors | None = None) -> None:
        self.path, self._encoder = Path(folder), encoder
        #: the last condition, and the rows for which it is true
        self._last_rows: tuple[str | None, NDArray[np.bool_]] = None, np.empty(0, np.bool_)
        try:
            read_consistently(self.path, self._map_files)
        except OSError as error:
            raise FolderError(f"{folder} cannot be read: {error}") from error
        if encoder is not None:
            self.require_model(encoder)

    def _map_files(self) -> None:
        """Checks the files against index.json, and maps them."""
        folder, self.identity = self.path, folder_identity(self.path)  # of this version
        card = self.card = IndexCard.read(folder)
        values_files = names.VALUE_FILES if card.columns else ()
        list_files = names.LIST_FILES if card.lists else ()
        INDEX.require_files(folder, (*names.OWN_FILES, *values_files, *list_files))

        def map_rows(data: str, offsets: str) -> ByteRows:
            return ByteRows.map(folder / data, folder / offsets, card.rows, names.CARD)

        self.vectors: NDArray[np.float32] = map_array(
            folder / names.VECTORS, FLOAT, (card.rows, card.dim), names.CARD
        )
        self._sentences = map_rows(names.SENTENCES, names.OFFSETS)
        self._values = map_rows(*names.VALUE_FILES) if card.columns else None
        self._candidates = None
        if card.lists:
            self._candidates = approximate.map_lists(folder, card)

    @classmethod
    def open(cls, folder: str | Path, encoder: SentenceVectors | None = None) -> Self:
        """Opens an index: checks its files and maps them, without reading them into memory.

        Args:
            folder: the folder that `genpool encode -o FOLDER/` or `index_writer` wrote.
            encoder: encodes queries. Default: None, the model that made the index is loaded when
                the first text is searched for.

        Returns:
            The index. It stays valid if the folder is replaced later.

        Raises:
            FolderError: the folder is missing, incomplete, damaged, or not an index.
            InputError: the index was made with another model than `encoder`.

        Example:
            >>> index = SearchIndex.open("index")
            >>> print(len(index), index.sentence(0))
        """
        return cls(folder, encoder)

    @property
    def encoder(self) -> SentenceVectors:
        """The model that made the index; loaded at the first use."""
        if self._encoder is None:
            path = self.card.model.path
            try:
                encoder = SentenceEncoder.from_pretrained(path)
            except FolderError as error:
                raise FolderError(
                    f"{self.path} was made with the model {path}, which cannot be loaded: {error} "
                    "Name its folder: --model FOLDER (Python: SearchIndex.open(folder, encoder))."
                ) from error
            self.require_model(encoder)
            self._encoder = encoder
        return self._encoder

    def __len__(self) -> int:
        """The number of sentences."""
        return self.card.rows

    def require_model(self, encoder: SentenceVectors) -> None:
        """Checks that the index was made with this model; else its cosines mean nothing.

        Args:
            encoder: the model that will encode the queries.

        Raises:
            InputError: the index was made with another model.

        Example:
            >>> index.require_model(SentenceEncoder.from_pretrained())
        """
        ModelReference.of(encoder).require_same(self.card.model, self.path)

    def sentence(self, row: int) -> str:
        """Returns the sentence of a row.

        Args:
            row: from 0 to len(index) - 1.

        Raises:
            InputError: there is no such row.
            FolderError: the files of the index are damaged.

        Example:
            >>> index.sentence(0)
        """
        self._require_row(row)
        try:
            return self._sentences.read(row, row + 1).decode("utf-8", "surrogatepass")
        except ValueError as error:
            raise self._damaged(f"the sentence of row {row}", error) from None

    def values(self, row: int) -> dict[str, Scalar]:
        """Returns the columns of a row, by their names; empty if the index keeps none.

        Args:
            row: from 0 to len(index) - 1.

        Raises:
            InputError: there is no such row.
            FolderError: the files of the index are damaged.

        Example:
            >>> index.values(0)
            {'id': 'a1', 'lang': 'en'}
        """
        self._require_row(row)
        [values] = self.row_values(row, row + 1)
        return dict(zip(self.card.columns, values, strict=True))

    def row_values(self, first: int, last: int) -> list[list[Scalar]]:
        """Returns the values of the rows from `first` to `last`, which is not included."""
        if self._values is None:
            return [[] for _ in range(first, last)]
        try:
            lines = self._values.read(first, last).rstrip(b"\n").replace(b"\n", b",")
            rows: list[list[Scalar]] = json.loads(b"[" + lines + b"]")
            columns = len(self.card.columns)
            are_rows = all(type(row) is list and len(row) == columns for row in rows)
            cells = chain.from_iterable(rows) if are_rows else [rows]
            if len(rows) != last - first or any(isinstance(cell, list | dict) for cell in cells):
                raise ValueError(f"expected {last - first} rows of {columns} values")
            return rows
        except (ValueError, RecursionError) as error:
            raise self._damaged(f"the columns of rows {first} to {last - 1}", error) from None

    def all_values(self) -> Iterator[list[Scalar]]:
        """Yields the values of every row."""
        for first in range(0, len(self), VALUE_ROWS):
            yield from self.row_values(first, min(first + VALUE_ROWS, len(self)))

    def row_bytes(self, row: int) -> tuple[bytes, bytes]:
        """Returns the sentence and the line of values of a row, as they are in the files."""
        values = b"" if self._values is None else self._values.read(row, row + 1)
        return self._sentences.read(row, row + 1), values

    def _require_row(self, row: int) -> None:
        if not 0 <= row < self.card.rows:
            raise InputError(f"row is {row}; the index has rows 0 to {self.card.rows - 1}.")

    def _damaged(self, what: str, error: Exception) -> FolderError:
        return FolderError(f"{self.path} is damaged: {what} cannot be read: {error}.")

    def search(
        self,
        queries: str | Sequence[str] | ArrayLike,
        top: int = 10,
        where: str | None = None,
        exact: bool = False,
    ) -> list[Any]:
        """Returns the sentences with the highest cosine to each query.

        Args:
            queries: a text, a list of texts, vectors (n, dim), or a single one (dim,). A text
                without words has no hits; a vector of zeros has cosine 0 with every sentence.
            top: how many sentences to return for each query. Default: 10.
            where: a condition on the columns of the index, such as `lang == "en" and year >= 2000`
                (see `genpool.search.where`). Default: None, all rows.
            exact: compare all rows even if the index has lists of similar ones, which may miss a
                hit. Default: False. Without lists, and with `where`, every search is exact.

        Returns:
            A list of hits for each query, best first; equal scores in the order of the rows. For a
            single text, one list of hits. There are fewer hits than `top` only if there are fewer
            rows.

        Raises:
            InputError: `top` is below 1, the queries are of another dimension or not finite, or
                `where` is not a condition on the columns of the index.
            FolderError: the files of the index are damaged, or its model cannot be loaded.

        Example:
            >>> index.search("A dog runs.", top=3)
            >>> [hits] = index.search(encoder.encode(["A dog runs."]), top=3)
        """
        if isinstance(top, bool) or top < 1:
            raise InputError(f"top is {top}; expected 1 or more.")
        is_single = isinstance(queries, str)
        vectors: Any = [queries] if is_single else queries
        words: list[list[str]] | None = None
        if isinstance(vectors, list | tuple) and vectors and isinstance(vectors[0], str):
            words = self.encoder.text.words_batch(list(vectors))
            vectors = self.encoder.encode(vectors, truncate_dim=self.card.dim)
        units = unit_rows(self._as_queries(vectors))  # (n, dim)
        allowed = None if where is None else self._rows_where(where)
        candidates = None if exact or allowed is not None else self._candidates
        results: list[list[Hit]] = []
        for first in range(0, len(units), QUERIES_PER_PASS):
            group = units[first : first + QUERIES_PER_PASS]
            try:
                best = nearest_rows(
                    self.vectors, group, top, self.card.normalized, allowed, candidates
                )
            except ValueError as error:
                raise FolderError(f"{self.path} is damaged: {error}.") from None
            for found in best:
                pairs = zip(found.rows.tolist(), found.scores.tolist(), strict=True)
                has_words = words is None or words[len(results)]
                results.append([self._hit(*pair) for pair in pairs] if has_words else [])
        return results[0] if is_single else results

    def _hit(self, row: int, score: float) -> Hit:
        return Hit(row, score, self.sentence(row), self.values(row))

    def _rows_where(self, where: str) -> NDArray[np.bool_]:
        """Returns which rows a condition is true for (rows,); the last answer is kept."""
        if self._last_rows[0] != where:
            condition = parse_condition(where, self.card.columns)
            rows = np.fromiter(map(condition, self.all_values()), np.bool_, len(self))
            self._last_rows = where, rows
        return self._last_rows[1]

    def _as_queries(self, vectors: ArrayLike) -> NDArray[np.float64]:
        array: NDArray[Any] = np.asarray(vectors)
        queries, dim = np.atleast_2d(array), self.card.dim
        if queries.ndim != 2 or queries.shape[1] != dim or queries.dtype.kind not in "fiu":
            raise InputError(
                f"got queries of shape {array.shape} ({array.dtype}); the vectors of the index "
                f"have {dim} dimensions: expected (n, {dim})."
            )
        if not np.isfinite(queries).all():
            raise InputError("a query contains NaN or infinity; expected finite values.")
        return queries.astype(np.float64)
