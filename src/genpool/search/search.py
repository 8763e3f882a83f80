"""Searching an index: exact cosine, one block of mapped rows at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genpool.errors import FolderError, InputError
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.search.best_rows import BestRows, NotFiniteError, rough_cosines, tolerance
from genpool.search.index_card import IndexCard, ModelReference
from genpool.search.index_folder import IndexFiles, read_index
from genpool.tensors.unit_rows import unit_rows

#: vectors that are compared at a time: they fit into the caches, and calls are few
BLOCK_BYTES = 4 << 20
#: queries that share one pass over the rows
QUERIES_PER_PASS = 64


class Hit(NamedTuple):
    """A sentence that a search returned.

    Attributes:
        row: its row in the index, from 0.
        score: its cosine with the query, from -1 to 1.
        sentence: its text.
    """

    row: int
    score: float
    sentence: str


class SearchIndex:
    """The sentences of a folder made by `genpool encode`, searched by meaning.

    The vectors stay on disk, mapped into memory; the search is exact. Use `SearchIndex.open` to
    open a folder.

    Args:
        path: the folder, for messages.
        files: its mapped files.

    Attributes:
        path: the folder.
        block_rows: how many rows are compared at a time.

    Example:
        >>> index = SearchIndex.open("index")
        >>> index.require_model(encoder)
        >>> [hits] = index.search(encoder.encode(["A dog runs."]), top=3)
        >>> print(hits[0].score, hits[0].sentence)
    """

    def __init__(self, path: Path, files: IndexFiles) -> None:
        self.path, self._files = path, files
        self.block_rows = max(1, BLOCK_BYTES // (4 * files.card.dim))

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Opens an index: checks its files and maps them, without reading them into memory.

        Args:
            folder: the folder that `genpool encode -o FOLDER/` or `index_writer` wrote.

        Returns:
            The index. It stays valid if the folder is replaced later.

        Raises:
            FolderError: the folder is missing, incomplete, damaged, or no index.

        Example:
            >>> index = SearchIndex.open("index")
            >>> print(len(index), index.sentence(0))
        """
        return cls(Path(folder), read_index(folder))

    @property
    def card(self) -> IndexCard:
        """What index.json says: rows, dimension, and the model."""
        return self._files.card

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
        if not 0 <= row < len(self):
            raise InputError(f"row is {row}; the index has rows 0 to {len(self) - 1}.")
        start, end = (int(offset) for offset in self._files.offsets[row : row + 2])
        try:
            if not 0 <= start <= end <= len(self._files.texts):
                raise ValueError(f"it goes from byte {start} to {end}")
            return self._files.texts[start:end].tobytes().decode("utf-8", "surrogatepass")
        except ValueError as error:
            raise FolderError(
                f"{self.path} is damaged: the sentence of row {row} cannot be read: {error}."
            ) from None

    def search(self, vectors: ArrayLike, top: int = 10) -> list[list[Hit]]:
        """Returns the sentences with the highest cosine to each query.

        Args:
            vectors: queries (n, dim), or a single one (dim,). A vector of zeros has cosine 0 with
                every sentence.
            top: how many sentences to return for each query. Default: 10.

        Returns:
            A list of hits for each query, best first; equal scores in the order of the rows. There
            are fewer hits than `top` only if the index has fewer rows.

        Raises:
            InputError: `top` is below 1, or the queries are of another dimension or not finite.
            FolderError: the files of the index are damaged.

        Example:
            >>> [hits] = index.search(encoder.encode(["A dog runs."]), top=3)
        """
        if isinstance(top, bool) or top < 1:
            raise InputError(f"top is {top}; expected 1 or more.")
        queries = unit_rows(self._as_queries(vectors))  # (n, dim)
        results: list[list[Hit]] = []
        for first in range(0, len(queries), QUERIES_PER_PASS):
            for best in self._best(queries[first : first + QUERIES_PER_PASS], top):
                pairs = zip(best.rows.tolist(), best.scores.tolist(), strict=True)
                results.append([Hit(row, score, self.sentence(row)) for row, score in pairs])
        return results

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

    def _best(self, queries: NDArray[np.float64], top: int) -> list[BestRows]:
        normalized, slack = self.card.normalized, tolerance(self.card.dim, self.card.normalized)
        best = [BestRows(query, top, slack) for query in queries]
        queries32 = queries.astype(np.float32)
        for first in range(0, len(self), self.block_rows):
            # As a plain array: slices of np.memmap refer to their file, which takes time.
            block = np.asarray(self._files.vectors[first : first + self.block_rows], np.float32)
            rough = rough_cosines(block, queries32, normalized)  # (queries, rows)
            try:
                for rows, cosines in zip(best, rough, strict=True):
                    rows.add(block, cosines, first)
            except NotFiniteError as error:
                raise FolderError(f"{self.path} is damaged: {error}.") from None
        return best
