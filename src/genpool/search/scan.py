"""Which rows of an index are nearest to queries: among all of them, or among those of a few lists.

Cosines are exact in both cases; what lists may miss are rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from genpool.errors import FolderError
from genpool.search.approximate import CANDIDATES_PER_HIT
from genpool.search.best_rows import BestRows, NotFiniteError, rough_cosines, tolerance
from genpool.search.index_files import IndexFiles

Queries = NDArray[np.float64]  # (n, dim), of length 1


def best_of_all(
    files: IndexFiles,
    queries: Queries,
    top: int,
    block_rows: int,
    allowed: NDArray[np.bool_] | None = None,
) -> list[BestRows]:
    """Returns the best rows for each query.

    Args:
        files: the index.
        queries: vectors (n, dim) of length 1.
        top: how many rows for each.
        block_rows: how many rows are compared at a time.
        allowed: the rows that count (rows,). Default: None, all of them.
    """
    best = _no_rows(files, queries, top)
    for first in range(0, files.card.rows, block_rows):
        last = min(first + block_rows, files.card.rows)
        rows = np.arange(first, last)
        # As a plain array: slices of np.memmap refer to their file, which takes time.
        block = np.asarray(files.vectors[first:last], np.float32)
        if allowed is not None:
            chosen = allowed[first:last]
            rows, block = rows[chosen], block[chosen]
        _add(files, best, queries, block, rows)
    return best


def best_of_lists(files: IndexFiles, queries: Queries, top: int, block_rows: int) -> list[BestRows]:
    """Returns the best rows for each query among those that the lists of the index propose.

    A query for which the lists have too few rows is compared with all of them.
    """
    if files.lists is None:
        return best_of_all(files, queries, top, block_rows)
    best = _no_rows(files, queries, top)
    groups = files.lists.candidates(queries.astype(np.float32), top * CANDIDATES_PER_HIT)
    for place, rows in enumerate(groups):
        query = queries[place : place + 1]
        if len(rows) < min(top, files.card.rows):
            [best[place]] = best_of_all(files, query, top, block_rows)
        else:
            block = np.asarray(files.vectors[rows], np.float32)
            _add(files, best[place : place + 1], query, block, rows)
    return best


def _no_rows(files: IndexFiles, queries: Queries, top: int) -> list[BestRows]:
    slack = tolerance(files.card.dim, files.card.normalized)
    return [BestRows(query, top, slack) for query in queries]


def _add(
    files: IndexFiles,
    best: Sequence[BestRows],
    queries: Queries,
    block: NDArray[np.float32],
    rows: NDArray[np.int64],
) -> None:
    """Adds the rows of a block that are among the best for each query."""
    if not len(rows):
        return
    rough = rough_cosines(block, queries.astype(np.float32), files.card.normalized)
    try:
        for found, cosines in zip(best, rough, strict=True):  # cosines (rows,)
            found.add(block, cosines, rows)
    except NotFiniteError as error:
        raise FolderError(f"{files.path} is damaged: {error}.") from None
