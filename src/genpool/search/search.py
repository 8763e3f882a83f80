"""Searching an index: exact cosine, one block of mapped rows at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genpool.errors import FolderError, InputError
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.search.best_rows import (
    BestRows,
    NotFiniteError,
    rough_cosines,
    tolerance,
    unit_rows,
)
from genpool.search.index_card import IndexCard, ModelReference
from genpool.search.index_folder import IndexFiles, read_index

#: of vectors that are looked at together: near enough to the caches, far from the call's overhead
BLOCK_BYTES = 4 << 20
#: queries that share one pass over the rows
TOGETHER = 64


class Hit(NamedTuple):
    """A row of the index, counted from 0, its cosine with the query, and its sentence."""

    row: int
    score: float
    sentence: str


class SearchIndex:
    """The sentences of a folder made by `genpool encode`, searched by meaning.

    Example:
        >>> index = SearchIndex.open("index")
        >>> index.require_model(encoder)
        >>> [hits] = index.search(encoder.encode(["A dog runs."]), top=3)
    """

    def __init__(self, path: Path, files: IndexFiles) -> None:
        self.path, self._files = path, files
        self.block_rows = max(1, BLOCK_BYTES // (4 * files.card.dim))

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Checks and maps a folder; nothing of it is read into memory yet."""
        return cls(Path(folder), read_index(folder))

    @property
    def card(self) -> IndexCard:
        return self._files.card

    def __len__(self) -> int:
        return self.card.rows

    def require_model(self, encoder: SentenceVectors) -> None:
        """Raises InputError if the index was made with another model: cosines would be noise."""
        given, own = ModelReference.of(encoder), self.card.model
        if given.fingerprint != own.fingerprint:
            raise InputError(
                f"{self.path} was made with another model: {own}; this one is {given}. "
                "Search with that model, or encode the sentences again with this one."
            )

    def sentence(self, row: int) -> str:
        """The sentence of a row, as it was given."""
        if not 0 <= row < len(self):
            raise InputError(f"row is {row}; the index has rows 0 to {len(self) - 1}.")
        begin, end = (int(offset) for offset in self._files.offsets[row : row + 2])
        try:
            if not 0 <= begin <= end <= len(self._files.texts):
                raise ValueError(f"it goes from byte {begin} to {end}")
            return self._files.texts[begin:end].tobytes().decode("utf-8", "surrogatepass")
        except ValueError as error:
            raise FolderError(
                f"{self.path} is damaged: the sentence of row {row} cannot be read: {error}."
            ) from None

    def search(self, vectors: ArrayLike, top: int = 10) -> list[list[Hit]]:
        """The hits of each query, best first; equal scores in the order of the rows.

        vectors: queries (n, dim), or one (dim,), which gives a list of one list. A vector of zeros
        has cosine 0 with everything. There are fewer hits than `top` only if there are fewer rows.
        """
        if isinstance(top, bool) or top < 1:
            raise InputError(f"top is {top}; expected 1 or more.")
        queries = unit_rows(self._checked(vectors))  # (n, dim)
        found: list[list[Hit]] = []
        for begin in range(0, len(queries), TOGETHER):
            for best in self._best(queries[begin : begin + TOGETHER], top):
                pairs = zip(best.rows.tolist(), best.scores.tolist(), strict=True)
                found.append([Hit(row, score, self.sentence(row)) for row, score in pairs])
        return found

    def _checked(self, vectors: ArrayLike) -> NDArray[np.float64]:
        given: NDArray[Any] = np.asarray(vectors)
        queries = given.reshape(1, -1) if given.ndim == 1 else given
        if (
            queries.ndim != 2
            or queries.shape[1] != self.card.dim
            or queries.dtype.kind not in "fiu"
        ):
            raise InputError(
                f"got queries of shape {given.shape} ({given.dtype}); the index has vectors of "
                f"{self.card.dim} numbers: expected (n, {self.card.dim})."
            )
        if not np.isfinite(queries).all():
            raise InputError("a query holds NaN or infinity; expected finite numbers.")
        return queries.astype(np.float64)

    def _best(self, queries: NDArray[np.float64], top: int) -> list[BestRows]:
        normalized, slack = self.card.normalized, tolerance(self.card.dim, self.card.normalized)
        best = [BestRows(query, top, slack) for query in queries]
        narrow = queries.astype(np.float32)
        for first in range(0, len(self), self.block_rows):
            # As a plain array: slices of np.memmap carry their file about, which costs time.
            block = np.asarray(self._files.vectors[first : first + self.block_rows], np.float32)
            try:
                for each, rough in zip(best, rough_cosines(block, narrow, normalized), strict=True):
                    each.look_at(block, rough, first)
            except NotFiniteError as error:
                raise FolderError(f"{self.path} is damaged: {error}.") from None
        return best
