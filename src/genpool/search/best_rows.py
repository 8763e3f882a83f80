"""The rows with the highest cosine, exactly, while only a block of them is looked at.

One matrix product in 32 bits gives every row of a block a cosine that is off by at most
`tolerance`. Rows that could be among the best by that are scored again in 64 bits, row by row, so
that equal rows get equal scores wherever they stand, and ties are decided by the row number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genpool.search.index_folder import UNIT

#: squared lengths outside are too coarse, or too large, in 32 bits
SMALLEST, LARGEST = 1e-25, 1e25

Block = NDArray[np.float32]  # (rows, dim)
Cosines = NDArray[np.float64]


def tolerance(dim: int, normalized: bool) -> float:
    """How far a rough cosine can be off: roundings of a sum of `dim` products, and of lengths."""
    return dim * 2.0**-23 + 2.0**-20 + (UNIT if normalized else 0.0)


def unit_rows(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows (n, dim) of length 1; a row of zeros stays zeros."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    scaled = vectors / np.where(largest > 0, largest, 1.0)  # squares of 1e-200 would vanish
    lengths = np.sqrt((scaled * scaled).sum(axis=1, keepdims=True))
    unit: NDArray[np.float64] = scaled / np.where(lengths > 0, lengths, 1.0)
    return unit


def rough_cosines(block: Block, queries: NDArray[np.float32], normalized: bool) -> Block:
    """Cosines (queries, rows); not finite where 32 bits do not do."""
    with np.errstate(all="ignore"):
        scores = queries @ block.T  # (queries, rows)
        if normalized:
            return scores
        squares = np.einsum("ij,ij->i", block, block)  # (rows,)
        odd = np.flatnonzero(~((squares > SMALLEST) & (squares < LARGEST)))
        squares[odd] = 1.0
        scores /= np.sqrt(squares)
        scores[:, odd[block[odd].any(axis=1)]] = np.nan  # zeros keep their cosine 0
        return scores


def exact_cosines(rows: Block, query: NDArray[np.float64]) -> Cosines:
    """Cosines (n,) of rows with a query of length 1; NaN only for a row that is not finite."""
    wide = rows.astype(np.float64)
    # Sums along a row, and no matrix product: that adds in an order which depends on the place.
    lengths = np.sqrt((wide * wide).sum(axis=1))
    cosines = (wide * query).sum(axis=1) / np.where(lengths > 0, lengths, 1.0)
    clipped: Cosines = np.clip(cosines, -1.0, 1.0)
    return clipped


class NotFiniteError(Exception):
    """The vector of a row holds NaN or infinity."""

    def __init__(self, row: int) -> None:
        super().__init__(f"the vector of row {row} holds NaN or infinity")


class BestRows:
    """The best rows for one query among all blocks seen so far, best first."""

    def __init__(self, query: NDArray[np.float64], top: int, slack: float) -> None:
        self.query, self.top, self.slack = query, top, slack
        self.rows = np.empty(0, np.int64)
        self.scores = np.empty(0, np.float64)

    def look_at(self, block: Block, rough: NDArray[np.float32], first_row: int) -> None:
        """Takes the best rows of a block, given its rough cosines (rows,)."""
        near = self._candidates(rough)
        if not len(near):
            return
        with np.errstate(all="ignore"):
            exact = exact_cosines(block[near], self.query)
        damaged = near[np.isnan(exact)]
        if len(damaged):
            raise NotFiniteError(first_row + int(damaged[0]))
        rows = np.concatenate([self.rows, near + first_row])
        scores = np.concatenate([self.scores, exact])
        order = np.lexsort((rows, -scores))[: self.top]
        self.rows, self.scores = rows[order], scores[order]

    def _candidates(self, rough: NDArray[np.float32]) -> NDArray[np.int64]:
        """Places in the block that may be among the best, those of unknown cosine included."""
        unknown = ~np.isfinite(rough)
        known = np.where(unknown, -np.inf, rough) if unknown.any() else rough
        floor = float(self.scores[-1]) if len(self.scores) == self.top else -np.inf
        # The threshold of the block matters only while it is above that of the blocks before.
        if len(known) > self.top and known.max() >= floor - self.slack:
            place = len(known) - self.top
            floor = max(floor, float(np.partition(known, place)[place]) - self.slack)
        near: NDArray[np.int64] = np.flatnonzero((known >= floor - self.slack) | unknown)
        return near
