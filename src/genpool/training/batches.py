"""The order of training: batches of like length, shuffled by seed and epoch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: batches that are sorted by length together before they are cut
BUFFER = 50


def epoch_batches(
    lengths: NDArray[np.int64], batch_size: int, seed: int, epoch: int
) -> list[NDArray[np.int64]]:
    """Every example once, in batches of like length and in an order that (seed, epoch) decides.

    lengths (examples, sides). The examples are shuffled, sorted by length within buffers of
    BUFFER batches, cut into batches, and the batches are shuffled.
    """
    random = np.random.default_rng((seed, epoch))
    order = random.permutation(len(lengths))
    batches: list[NDArray[np.int64]] = []
    for start in range(0, len(order), BUFFER * batch_size):
        buffer = order[start : start + BUFFER * batch_size]
        # The longest side decides how long a batch takes, the rest how much padding it has.
        keys = (lengths[buffer].sum(axis=1), lengths[buffer].max(axis=1))
        ranked = buffer[np.lexsort(keys)]
        batches += [ranked[at : at + batch_size] for at in range(0, len(ranked), batch_size)]
    return [batches[number] for number in random.permutation(len(batches))]


def process_share(batch: NDArray[np.int64], process: int, processes: int) -> NDArray[np.int64]:
    """The part of a batch that one of several processes computes."""
    # In turns: a batch is sorted by length, and every process should get long and short ones.
    return batch[process::processes]
