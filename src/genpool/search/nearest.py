"""Which rows of an index are nearest to queries: among all of them, or among a few candidates.

Cosines are exact in both cases; what candidates may miss are rows. Only a block of rows is in use
at a time. One matrix product in 32 bits gives every row of a block a cosine with an error of at
most `slack`. Rows that may be among the best by that are scored again in 64 bits, row by row, so
that equal rows get equal scores at any position, and ties are decided by the row number.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

#: vectors that are compared at a time: they fit into the caches, and calls are few
BLOCK_BYTES = 4 << 20
#: vectors count as normalized if their squared length differs from 1 by no more than this
UNIT_TOLERANCE = 1e-5
#: squared lengths outside of these are too inaccurate, or too large, in 32 bits
MIN_SQUARE, MAX_SQUARE = 1e-25, 1e25

Vectors = NDArray[np.float32]  # (rows, dim)
Rows = NDArray[np.int64]
#: returns for each query (n, dim) the rows, rising, that may be among the best of a number
Candidates = Callable[[Vectors, int], list[Rows]]


def nearest_rows(
    vectors: Vectors,
    queries: NDArray[np.float64],
    top: int,
    normalized: bool,
    allowed: NDArray[np.bool_] | None = None,
    candidates: Candidates | None = None,
) -> list[BestRows]:
    """Returns the best rows for each query (n, dim), which are of length 1.

    Rows that are `normalized` count as having length 1. Where `allowed` (rows,) is False, a row
    does not count. With `candidates`, only these rows are compared, or all where they are too few.
    ValueError if a vector contains NaN or infinity.
    """
    # The rounding of `dim` products and of lengths.
    slack = vectors.shape[1] * 2.0**-23 + 2.0**-20 + (UNIT_TOLERANCE if normalized else 0.0)
    best = [BestRows(query, top, slack) for query in queries]
    if candidates is not None:
        for place, rows in enumerate(candidates(queries.astype(np.float32), top)):
            query = queries[place : place + 1]
            if len(rows) < min(top, len(vectors)):
                [best[place]] = nearest_rows(vectors, query, top, normalized)
            else:
                block = np.asarray(vectors[rows], np.float32)
                best[place].add(block, rough_cosines(block, query, normalized)[0], rows)
        return best
    block_rows = max(1, BLOCK_BYTES // (4 * vectors.shape[1]))
    for first in range(0, len(vectors), block_rows):
        # As a plain array: slices of np.memmap refer to their file, which takes time.
        block = np.asarray(vectors[first : first + block_rows], np.float32)
        rows = np.arange(first, first + len(block))
        if allowed is not None:
            chosen = allowed[first : first + block_rows]
            rows, block = rows[chosen], block[chosen]
        if len(rows):
            cosines = rough_cosines(block, queries, normalized)  # (queries, rows)
            for found, rough in zip(best, cosines, strict=True):
                found.add(block, rough, rows)
    return best


def rough_cosines(block: Vectors, queries: NDArray[np.float64], normalized: bool) -> Vectors:
    """Returns cosines (queries, rows); not finite where 32 bits are not enough."""
    with np.errstate(all="ignore"):
        scores = queries.astype(np.float32) @ block.T  # (queries, rows)
        if normalized:
            return scores
        squares = np.einsum("ij,ij->i", block, block)  # (rows,)
        odd = np.flatnonzero(~((squares > MIN_SQUARE) & (squares < MAX_SQUARE)))
        squares[odd] = 1.0
        scores /= np.sqrt(squares)
        scores[:, odd[block[odd].any(axis=1)]] = np.nan  # zeros keep their cosine 0
        return scores


def exact_cosines(rows: Vectors, query: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns cosines (n,) of rows with a query of length 1; NaN only if a row is not finite."""
    rows64 = rows.astype(np.float64)  # (n, dim)
    with np.errstate(all="ignore"):
        # Sums along a row, and no matrix product, whose order of additions depends on the row.
        lengths = np.sqrt((rows64 * rows64).sum(axis=1))  # (n,)
        cosines = (rows64 * query).sum(axis=1) / np.where(lengths > 0, lengths, 1.0)  # (n,)
        return np.asarray(np.clip(cosines, -1.0, 1.0))


class BestRows:
    """The `top` best rows for a query (dim,) among all blocks so far, best first."""

    def __init__(self, query: NDArray[np.float64], top: int, slack: float) -> None:
        self.query, self.top, self.slack = query, top, slack
        self.rows, self.scores = np.empty(0, np.int64), np.empty(0, np.float64)

    def add(self, block: Vectors, rough: NDArray[np.float32], numbers: Rows) -> None:
        """Adds the rows of a block (rows, dim) with these rough cosines and row numbers (rows,)."""
        unknown = ~np.isfinite(rough)
        known = np.where(unknown, -np.inf, rough) if unknown.any() else rough
        threshold = float(self.scores[-1]) if len(self.scores) == self.top else -np.inf
        # The threshold of the block matters only if it is above that of the blocks before.
        if len(known) > self.top and known.max() >= threshold - self.slack:
            place = len(known) - self.top
            threshold = max(threshold, float(np.partition(known, place)[place]) - self.slack)
        candidates = np.flatnonzero((known >= threshold - self.slack) | unknown)
        if not len(candidates):
            return
        exact = exact_cosines(block[candidates], self.query)
        damaged = candidates[np.isnan(exact)]
        if len(damaged):
            raise ValueError(f"the vector of row {numbers[damaged[0]]} contains NaN or infinity")
        rows = np.concatenate([self.rows, numbers[candidates]])
        scores = np.concatenate([self.scores, exact])
        order = np.lexsort((rows, -scores))[: self.top]
        self.rows, self.scores = rows[order], scores[order]
