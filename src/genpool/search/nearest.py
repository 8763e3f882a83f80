"""Which rows of an index are nearest to queries: among all of them, or among those of a few lists.

Cosines are exact in both cases; what lists may miss are rows. Only a block of rows is in use at a
time. One matrix product in 32 bits gives every row of a block a cosine with an error of at most
`tolerance`. Rows that may be among the best by that are scored again in 64 bits, row by row, so
that equal rows get equal scores at any position, and ties are decided by the row number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genpool.search.approximate import CANDIDATES_PER_HIT, ListFiles

#: vectors count as normalized if their squared length differs from 1 by no more than this
UNIT_TOLERANCE = 1e-5
#: squared lengths outside of these are too inaccurate, or too large, in 32 bits
MIN_SQUARE, MAX_SQUARE = 1e-25, 1e25

Block = NDArray[np.float32]  # (rows, dim)
Cosines = NDArray[np.float64]


def nearest_rows(
    vectors: Block,
    queries: NDArray[np.float64],
    top: int,
    block_rows: int,
    normalized: bool,
    allowed: NDArray[np.bool_] | None = None,
    lists: ListFiles | None = None,
) -> list[BestRows]:
    """Returns the best rows for each query (n, dim), which are of length 1.

    Where `allowed` (rows,) is False, a row does not count. With `lists`, only the rows that they
    propose are compared, or all for a query for which they propose too few.

    Raises:
        ValueError: a vector contains NaN or infinity.
    """
    slack = tolerance(vectors.shape[1], normalized)
    best = [BestRows(query, top, slack) for query in queries]
    if lists is not None:
        groups = lists.candidates(queries.astype(np.float32), top * CANDIDATES_PER_HIT)
        for place, rows in enumerate(groups):
            query = queries[place : place + 1]
            if len(rows) < min(top, len(vectors)):
                [best[place]] = nearest_rows(vectors, query, top, block_rows, normalized)
            else:
                block = np.asarray(vectors[rows], np.float32)
                best[place].add(block, rough_cosines(block, query, normalized)[0], rows)
        return best
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


def tolerance(dim: int, normalized: bool) -> float:
    """Returns the largest error of a rough cosine: the rounding of `dim` products and of lengths.

    Rows that are `normalized` count as having length 1, and are not divided by their lengths.
    """
    return dim * 2.0**-23 + 2.0**-20 + (UNIT_TOLERANCE if normalized else 0.0)


def rough_cosines(block: Block, queries: NDArray[np.float64], normalized: bool) -> Block:
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


def exact_cosines(rows: Block, query: NDArray[np.float64]) -> Cosines:
    """Returns cosines (n,) of rows with a query of length 1; NaN only if a row is not finite."""
    rows64 = rows.astype(np.float64)  # (n, dim)
    # Sums along a row, and no matrix product, whose order of additions depends on the row.
    lengths = np.sqrt((rows64 * rows64).sum(axis=1))  # (n,)
    cosines = (rows64 * query).sum(axis=1) / np.where(lengths > 0, lengths, 1.0)  # (n,)
    clipped: Cosines = np.clip(cosines, -1.0, 1.0)
    return clipped


class BestRows:
    """The best rows for a query (dim,) among all blocks so far, best first.

    `top` rows are kept; `slack` is the tolerance of rough cosines.
    """

    def __init__(self, query: NDArray[np.float64], top: int, slack: float) -> None:
        self.query, self.top, self.slack = query, top, slack
        self.rows = np.empty(0, np.int64)
        self.scores = np.empty(0, np.float64)

    def add(self, block: Block, rough: NDArray[np.float32], numbers: NDArray[np.int64]) -> None:
        """Adds the rows of a block (rows, dim) that are among the best.

        `rough` are their rough cosines (rows,), `numbers` their row numbers (rows,), rising.
        """
        candidates = self._candidates(rough)
        if not len(candidates):
            return
        with np.errstate(all="ignore"):
            exact = exact_cosines(block[candidates], self.query)
        damaged = candidates[np.isnan(exact)]
        if len(damaged):
            raise ValueError(f"the vector of row {numbers[damaged[0]]} contains NaN or infinity")
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
