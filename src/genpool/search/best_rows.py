"""The rows with the highest cosine, exactly, although only a block of them is in use at a time.

One matrix product in 32 bits gives every row of a block a cosine with an error of at most
`tolerance`. Rows that may be among the best by that are scored again in 64 bits, row by row, so
that equal rows get equal scores at any position, and ties are decided by the row number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genpool.search.index_files import UNIT_TOLERANCE

#: squared lengths outside of these are too inaccurate, or too large, in 32 bits
MIN_SQUARE, MAX_SQUARE = 1e-25, 1e25

Block = NDArray[np.float32]  # (rows, dim)
Cosines = NDArray[np.float64]


def tolerance(dim: int, normalized: bool) -> float:
    """Returns the largest error of a rough cosine: the rounding of `dim` products and of lengths.

    Args:
        dim: the dimension of the vectors.
        normalized: the rows count as having length 1, and are not divided by their lengths.
    """
    return dim * 2.0**-23 + 2.0**-20 + (UNIT_TOLERANCE if normalized else 0.0)


def rough_cosines(block: Block, queries: NDArray[np.float32], normalized: bool) -> Block:
    """Returns cosines (queries, rows); not finite where 32 bits are not enough."""
    with np.errstate(all="ignore"):
        scores = queries @ block.T  # (queries, rows)
        if normalized:
            return scores
        squares = np.einsum("ij,ij->i", block, block)  # (rows,)
        odd = np.flatnonzero(~((squares > MIN_SQUARE) & (squares < MAX_SQUARE)))
        squares[odd] = 1.0
        scores /= np.sqrt(squares)
        scores[:, odd[block[odd].any(axis=1)]] = np.nan  # zeros keep their cosine 0
        return scores


def exact_cosines(rows: Block, query: NDArray[np.float64]) -> Cosines:
    """Returns cosines (n,) of rows with a query of length 1; NaN only if a row is not finite."""
    rows64 = rows.astype(np.float64)  # (n, dim)
    # Sums along a row, and no matrix product, whose order of additions depends on the row.
    lengths = np.sqrt((rows64 * rows64).sum(axis=1))  # (n,)
    cosines = (rows64 * query).sum(axis=1) / np.where(lengths > 0, lengths, 1.0)  # (n,)
    clipped: Cosines = np.clip(cosines, -1.0, 1.0)
    return clipped


class NotFiniteError(Exception):
    """The vector of a row contains NaN or infinity."""

    def __init__(self, row: int) -> None:
        super().__init__(f"the vector of row {row} contains NaN or infinity")


class BestRows:
    """The best rows for one query among all blocks so far, best first.

    Args:
        query: a vector (dim,) of length 1.
        top: how many rows to keep.
        slack: the `tolerance` of rough cosines.
    """

    def __init__(self, query: NDArray[np.float64], top: int, slack: float) -> None:
        self.query, self.top, self.slack = query, top, slack
        self.rows = np.empty(0, np.int64)
        self.scores = np.empty(0, np.float64)

    def add(self, block: Block, rough: NDArray[np.float32], numbers: NDArray[np.int64]) -> None:
        """Adds the rows of a block that are among the best.

        Args:
            block: vectors (rows, dim).
            rough: their rough cosines (rows,).
            numbers: their row numbers (rows,), rising.
        """
        candidates = self._candidates(rough)
        if not len(candidates):
            return
        with np.errstate(all="ignore"):
            exact = exact_cosines(block[candidates], self.query)
        damaged = candidates[np.isnan(exact)]
        if len(damaged):
            raise NotFiniteError(int(numbers[damaged[0]]))
        rows = np.concatenate([self.rows, numbers[candidates]])
        scores = np.concatenate([self.scores, exact])
        order = np.lexsort((rows, -scores))[: self.top]
        self.rows, self.scores = rows[order], scores[order]

    def _candidates(self, rough: NDArray[np.float32]) -> NDArray[np.int64]:
        """Returns the positions in the block that may be among the best, unknown cosines too."""
        unknown = ~np.isfinite(rough)
        known = np.where(unknown, -np.inf, rough) if unknown.any() else rough
        threshold = float(self.scores[-1]) if len(self.scores) == self.top else -np.inf
        # The threshold of the block matters only if it is above that of the blocks before.
        if len(known) > self.top and known.max() >= threshold - self.slack:
            place = len(known) - self.top
            threshold = max(threshold, float(np.partition(known, place)[place]) - self.slack)
        positions: NDArray[np.int64] = np.flatnonzero((known >= threshold - self.slack) | unknown)
        return positions
