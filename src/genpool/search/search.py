"""Searching an index: exact cosine, one block of mapped rows at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genpool.errors import FolderError, InputError
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.search.index_card import IndexCard, ModelReference
from genpool.search.index_files import IndexFiles, read_index
from genpool.search.row_values import Scalar
from genpool.search.scan import best_of_all, best_of_lists
from genpool.search.where import parse_condition
from genpool.sentence_encoder import SentenceEncoder
from genpool.tensors.unit_rows import unit_rows

#: vectors that are compared at a time: they fit into the caches, and calls are few
BLOCK_BYTES = 4 << 20
#: queries that share one pass over the rows
QUERIES_PER_PASS = 64
#: rows whose columns are read at a time
VALUE_ROWS = 10_000


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

    Args:
        path: the folder, for messages.
        files: its mapped files.
        encoder: encodes queries. Default: None, the model that made the index is loaded.

    Attributes:
        path: the folder.
        block_rows: how many rows are compared at a time.

    Example:
        >>> index = SearchIndex.open("index")
        >>> for hit in index.search("A dog runs.", top=3):
        ...     print(hit.score, hit.sentence)
    """

    def __init__(
        self, path: Path, files: IndexFiles, encoder: SentenceVectors | None = None
    ) -> None:
        self.path, self._files, self._encoder = path, files, encoder
        self.block_rows = max(1, BLOCK_BYTES // (4 * files.card.dim))
        self._last_rows: tuple[str, NDArray[np.bool_]] | None = None
        if encoder is not None:
            self.require_model(encoder)

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
            FolderError: the folder is missing, incomplete, damaged, or no index.
            InputError: the index was made with another model than `encoder`.

        Example:
            >>> index = SearchIndex.open("index")
            >>> print(len(index), index.sentence(0))
        """
        return cls(Path(folder), read_index(folder), encoder)

    @property
    def card(self) -> IndexCard:
        """What index.json says: rows, dimension, columns, and the model."""
        return self._files.card

    @property
    def encoder(self) -> SentenceVectors:
        """The model that made the index; loaded at the first use.

        Raises:
            FolderError: it cannot be loaded from where it was.
            InputError: what is there now is another model.
        """
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
        used, expected = ModelReference.of(encoder), self.card.model
        if used.fingerprint != expected.fingerprint:
            raise InputError(
                f"{self.path} was made with another model: {expected}; this one is {used}. "
                "Search with that model, or encode the sentences again with this one."
            )

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
        return self._files.sentence(row)

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
        self._files.require_row(row)
        [values] = self._files.row_values(row, row + 1)
        return dict(zip(self.card.columns, values, strict=True))

    @overload
    def search(  # type: ignore[overload-overlap]  # a text is a sequence of texts, too
        self, queries: str, top: int = 10, where: str | None = None, exact: bool = False
    ) -> list[Hit]: ...
    @overload
    def search(
        self,
        queries: Sequence[str] | ArrayLike,
        top: int = 10,
        where: str | None = None,
        exact: bool = False,
    ) -> list[list[Hit]]: ...
    def search(
        self,
        queries: str | Sequence[str] | ArrayLike,
        top: int = 10,
        where: str | None = None,
        exact: bool = False,
    ) -> list[Hit] | list[list[Hit]]:
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
                `where` is no condition on the columns of the index.
            FolderError: the files of the index are damaged, or its model cannot be loaded.

        Example:
            >>> index.search("A dog runs.", top=3)
            >>> [hits] = index.search(encoder.encode(["A dog runs."]), top=3)
        """
        if isinstance(top, bool) or top < 1:
            raise InputError(f"top is {top}; expected 1 or more.")
        if isinstance(queries, str):
            return self._search_texts([queries], top, where, exact)[0]
        if isinstance(queries, list | tuple) and queries and isinstance(queries[0], str):
            return self._search_texts(queries, top, where, exact)
        return self._search(queries, top, where, exact)

    def _search_texts(
        self, texts: Sequence[Any], top: int, where: str | None, exact: bool
    ) -> list[list[Hit]]:
        vectors = self.encoder.encode(texts, truncate_dim=self.card.dim)
        words = self.encoder.text.words_batch(list(texts))
        hits = self._search(vectors, top, where, exact)
        return [rows if has_words else [] for rows, has_words in zip(hits, words, strict=True)]

    def _search(
        self, vectors: ArrayLike, top: int, where: str | None, exact: bool
    ) -> list[list[Hit]]:
        queries = unit_rows(self._as_queries(vectors))  # (n, dim)
        allowed = None if where is None else self._allowed(where)
        is_listed = self._files.lists is not None and allowed is None and not exact
        results: list[list[Hit]] = []
        for first in range(0, len(queries), QUERIES_PER_PASS):
            group = queries[first : first + QUERIES_PER_PASS]
            found = (
                best_of_lists(self._files, group, top, self.block_rows)
                if is_listed
                else best_of_all(self._files, group, top, self.block_rows, allowed)
            )
            for best in found:
                pairs = zip(best.rows.tolist(), best.scores.tolist(), strict=True)
                results.append([self._hit(row, score) for row, score in pairs])
        return results

    def _hit(self, row: int, score: float) -> Hit:
        return Hit(row, score, self.sentence(row), self.values(row))

    def _allowed(self, where: str) -> NDArray[np.bool_]:
        """Returns which rows a condition is true for (rows,); the last answer is kept."""
        if self._last_rows is None or self._last_rows[0] != where:
            condition = parse_condition(where, self.card.columns)
            rows = np.empty(len(self), np.bool_)
            for first in range(0, len(self), VALUE_ROWS):
                last = min(first + VALUE_ROWS, len(self))
                rows[first:last] = [condition(row) for row in self._files.row_values(first, last)]
            self._last_rows = where, rows
        return self._last_rows[1]

    def _as_queries(self, vectors: ArrayLike) -> NDArray[np.float64]:
        array: NDArray[Any] = np.asarray(vectors)
        queries = array.reshape(1, -1) if array.ndim == 1 else array
        if (
            queries.ndim != 2
            or queries.shape[1] != self.card.dim
            or queries.dtype.kind not in "fiu"
        ):
            raise InputError(
                f"got queries of shape {array.shape} ({array.dtype}); the vectors of the index "
                f"have {self.card.dim} dimensions: expected (n, {self.card.dim})."
            )
        if not np.isfinite(queries).all():
            raise InputError("a query contains NaN or infinity; expected finite values.")
        return queries.astype(np.float64)
