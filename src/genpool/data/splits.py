"""Seeded splits: the same rows for the same seed, on every platform and every NumPy.

The order comes from the raw stream of a bit generator, the one thing that NumPy promises never
to change, and not from `shuffle` or `choice`, whose streams may change between versions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from genpool.errors import ConfigError, DataError


def seeded_order(count: int, seed: int) -> NDArray[np.int64]:
    """Returns the integers 0 to count - 1 in an order that the seed decides, shape (count,)."""
    if seed < 0:
        raise ConfigError(f"seed is {seed}; expected 0 or more")
    keys = np.random.PCG64(seed).random_raw(count)  # (count,)
    return np.argsort(keys, kind="stable").astype(np.int64)


def stratified_share(labels: Sequence[str | None], share: float, seed: int) -> NDArray[np.int64]:
    """Returns the indices of the rows that become a dev set, ascending, from the labels of all.

    Every label contributes its share (largest remainders decide the rounding) and keeps at least
    one row for training.
    """
    if not 0 < share < 1:
        raise ConfigError(f"dev share is {share}; expected a number between 0 and 1, such as 0.1")
    known = [label or "" for label in labels]
    names, classes = np.unique(known, return_inverse=True)  # (labels,), (rows,)
    counts = _apportion(np.bincount(classes, minlength=len(names)), share)  # (labels,)
    if counts.sum() == 0:
        raise DataError(
            f"{len(labels)} rows with {len(names)} labels are too few to take a dev share of; "
            "provide a dev set"
        )
    order = seeded_order(len(labels), seed)  # (rows,)
    ordered = classes[order]
    chosen = [order[ordered == at][:count] for at, count in enumerate(counts)]
    rows: NDArray[np.int64] = np.sort(np.concatenate(chosen))
    return rows


def _apportion(sizes: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    exact = sizes * share
    counts: NDArray[np.int64] = np.minimum(np.floor(exact).astype(np.int64), sizes - 1)
    missing = max(round(float(sizes.sum() * share)), 1) - int(counts.sum())
    # The largest remainder first; equal ones in the order of the labels.
    for at in np.argsort(-(exact - np.floor(exact)), kind="stable"):
        if missing > 0 and counts[at] < sizes[at] - 1:
            counts[at] += 1
            missing -= 1
    return counts
