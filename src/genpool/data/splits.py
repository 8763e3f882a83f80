"""Seeded splits: the same rows for the same seed, on every platform and every NumPy.

The order comes from the raw stream of a bit generator, the one thing that NumPy promises never
to change, and not from `shuffle` or `choice`, whose streams may change between versions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from genpool.errors import ConfigError, DataError

PARTS = ("train", "dev", "test")
REST = "rest"
_UNUSED = len(PARTS)
_SET_SIZES = (
    f"sizes=[train, dev, test], where train may be {REST!r} for all other rows (command line: "
    f"--set 'reader.sizes=[\"{REST}\", 2000, 2000]')"
)


def seeded_order(count: int, seed: int) -> NDArray[np.int64]:
    """Returns the integers 0 to count - 1 in an order that the seed decides, shape (count,)."""
    if seed < 0:
        raise ConfigError(f"seed is {seed}; expected 0 or more")
    keys = np.random.PCG64(seed).random_raw(count)  # (count,)
    return np.argsort(keys, kind="stable").astype(np.int64)


def check_sizes(sizes: Sequence[int | str]) -> tuple[int | str, int, int]:
    """Returns the sizes of train, dev and test; train may be "rest": all rows that are left."""
    if len(sizes) == len(PARTS):
        train, dev, test = sizes
        if isinstance(dev, int) and isinstance(test, int):
            counts = (dev, test) if train == REST else (train, dev, test)
            if all(isinstance(count, int) and count >= 0 for count in counts):
                return train, dev, test
    raise ConfigError(f"sizes is {list(sizes)}; expected three numbers: {_SET_SIZES}")


def draw_parts(count: int, sizes: Sequence[int | str], seed: int) -> NDArray[np.uint8]:
    """Returns the part of each row, an index into PARTS or 3 for an unused row, shape (count,).

    Test is drawn first and train last, so a smaller training set leaves dev and test unchanged.
    """
    train, dev, test = check_sizes(sizes)
    held_out = dev + test
    train = max(count - held_out, 0) if isinstance(train, str) else train
    if train == 0 or train + held_out > count:
        raise DataError(
            f"holds {count} rows that can be used; asked for {train + held_out} "
            f"({train} train, {dev} dev, {test} test); ask for fewer with {_SET_SIZES}"
        )
    parts = np.full(count, _UNUSED, dtype=np.uint8)  # (count,)
    order = seeded_order(count, seed)  # (count,)
    parts[order[:test]] = PARTS.index("test")
    parts[order[test:held_out]] = PARTS.index("dev")
    parts[order[held_out : held_out + train]] = PARTS.index("train")
    return parts


def stratified_share(labels: Sequence[str | None], share: float, seed: int) -> NDArray[np.int64]:
    """Returns the indices of the rows that become a dev set, ascending, from the labels of all.

    Every label contributes its share (largest remainders decide the rounding) and keeps at least
    one row for training.
    """
    if not 0 < share < 1:
        raise ConfigError(f"dev share is {share}; expected a number between 0 and 1, such as 0.1")
    names = sorted({label or "" for label in labels})
    index = {name: at for at, name in enumerate(names)}
    classes = np.array([index[label or ""] for label in labels], dtype=np.int64)  # (rows,)
    sizes = np.bincount(classes, minlength=len(names))  # (labels,)
    counts = _apportion(sizes, share)  # (labels,)
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
