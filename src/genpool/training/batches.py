"""The order of training: batches of similar length, shuffled by seed and epoch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from genpool.training.settings import TrainingSettings

Ints = NDArray[np.int64]

#: lengths (rows, sides) -> the keys that rows are sorted by, as in `np.lexsort`: the last is first
SORT_KEYS: dict[str, Callable[[Ints], tuple[Ints, ...]]] = {
    # The longest side decides how long a batch takes, the rest how much padding it has.
    "longest": lambda lengths: (lengths.sum(axis=1), lengths.max(axis=1)),
    "second": lambda lengths: (lengths[:, -1],),
}


def epoch_batches(lengths: Ints, settings: TrainingSettings, epoch: int) -> list[Ints]:
    """Returns the batches of an epoch, which hold every row once.

    The rows are sorted by length within buffers of `buffer_batches` batches and cut into batches.
    With shuffle="rows" the rows are shuffled before that and the batches of all buffers after it;
    with shuffle="batches" the rows keep their order, and the batches of each buffer are shuffled.

    Args:
        lengths: (rows, sides), the tokens of each sentence.
        settings: Its seed decides the order together with the epoch.
        epoch: The number of the epoch, from 0.

    Returns:
        Arrays of row numbers, of `batch_size` or fewer.
    """
    random = np.random.default_rng((settings.seed, epoch))
    shuffles_rows = settings.shuffle == "rows"
    order = random.permutation(len(lengths)) if shuffles_rows else np.arange(len(lengths))
    size, buffer_size = settings.batch_size, settings.buffer_batches * settings.batch_size
    batches: list[Ints] = []
    for start in range(0, len(order), buffer_size):
        buffer = order[start : start + buffer_size]
        ranked = buffer[np.lexsort(SORT_KEYS[settings.sort_by](lengths[buffer]))]
        buffered = [ranked[at : at + size] for at in range(0, len(ranked), size)]
        batches += buffered if shuffles_rows else _shuffled(buffered, random)
    return _shuffled(batches, random) if shuffles_rows else batches


def _shuffled(batches: list[Ints], random: np.random.Generator) -> list[Ints]:
    return [batches[number] for number in random.permutation(len(batches))]


def count_steps(rows: int, settings: TrainingSettings) -> int:
    """Returns the steps of an epoch."""
    return -(-rows // settings.batch_size)


def count_epochs(lengths: Ints, settings: TrainingSettings) -> int:
    """Returns the epochs of a run: as many as `steps` needs, from `min_epochs` to `epochs`.

    Args:
        lengths: (rows, sides), the tokens of each sentence.
        settings: `max_tokens` limits the epochs too.
    """
    if settings.steps is None:
        return settings.epochs
    wanted = -(-settings.steps // count_steps(len(lengths), settings))
    if settings.max_tokens is not None:
        wanted = min(wanted, settings.max_tokens // max(int(lengths.sum()), 1))
    return min(max(wanted, settings.min_epochs), settings.epochs)


def process_share(batch: Ints, process: int, processes: int) -> Ints:
    """Returns the rows of a batch that one of several processes computes."""
    # In turns: a batch is sorted by length, and every process should get long and short rows.
    return batch[process::processes]
