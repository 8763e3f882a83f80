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


def seeded_order(count: int, seed: int) -> NDArray[np.int64]:
    """The numbers 0 … count-1 in an order that the seed decides."""
    if seed < 0:
        raise ConfigError(f"seed is {seed}; expected 0 or more")
    keys = np.random.PCG64(seed).random_raw(count)  # (count,)
    return np.argsort(keys, kind="stable").astype(np.int64)


def check_sizes(sizes: Sequence[int | str]) -> tuple[int | str, int, int]:
    """The sizes of train, dev and test; train may be "rest": all rows that are left."""
    expected = f"expected three numbers, train, dev and test; train may be {REST!r}"
    if len(sizes) == len(PARTS):
        train, dev, test = sizes
        if isinstance(dev, int) and isinstance(test, int):
            numbers = (dev, test) if train == REST else (train, dev, test)
            if all(isinstance(number, int) and number >= 0 for number in numbers):
                return train, dev, test
    raise ConfigError(f"sizes is {list(sizes)}; {expected}")


def draw_parts(count: int, sizes: Sequence[int | str], seed: int) -> NDArray[np.uint8]:
    """For each row the place of its split in PARTS, or 3 for a row that is not used.

    Test is drawn first and train last, so a smaller training set leaves dev and test as they are.
    """
    train, dev, test = check_sizes(sizes)
    held_out = dev + test
    train = max(count - held_out, 0) if isinstance(train, str) else train
    if train == 0 or train + held_out > count:
        raise DataError(
            f"holds {count} rows that can be used; asked for {train + held_out} "
            f"({train} train, {dev} dev, {test} test); ask for fewer with "
            f'sizes=[train, dev, test], where train may be "{REST}"'
        )
    parts = np.full(count, _UNUSED, dtype=np.uint8)  # (count,)
    order = seeded_order(count, seed)
    parts[order[:test]] = PARTS.index("test")
    parts[order[test:held_out]] = PARTS.index("dev")
    parts[order[held_out : held_out + train]] = PARTS.index("train")
    return parts


def stratified_share(labels: Sequence[str | None], share: float, seed: int) -> NDArray[np.int64]:
    """The rows of a training set that become its dev set, in ascending order.

    Every label gives its share (largest remainders decide the rounding), and keeps at least one
    row for training.
    """
    if not 0 < share < 1:
        raise ConfigError(f"dev share is {share}; expected a number between 0 and 1, such as 0.1")
    names = sorted({label or "" for label in labels})
    place = {name: at for at, name in enumerate(names)}
    classes = np.array([place[label or ""] for label in labels], dtype=np.int64)  # (rows,)
    sizes = np.bincount(classes, minlength=len(names))  # (labels,)
    takes = _apportion(sizes, share)
    if takes.sum() == 0:
        raise DataError(
            f"{len(labels)} rows with {len(names)} labels are too few to take a dev share of; "
            "give a dev set"
        )
    order = seeded_order(len(labels), seed)
    ordered = classes[order]
    chosen = [order[ordered == at][:take] for at, take in enumerate(takes)]
    rows: NDArray[np.int64] = np.sort(np.concatenate(chosen))
    return rows


def _apportion(sizes: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    exact = sizes * share
    takes: NDArray[np.int64] = np.minimum(np.floor(exact).astype(np.int64), sizes - 1)
    missing = max(round(float(sizes.sum() * share)), 1) - int(takes.sum())
    # The largest remainder first; equal ones in the order of the labels.
    for at in np.argsort(-(exact - np.floor(exact)), kind="stable"):
        if missing > 0 and takes[at] < sizes[at] - 1:
            takes[at] += 1
            missing -= 1
    return takes
