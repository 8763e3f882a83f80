"""Running a model over many sentences: sorted by length, returned in order, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

import torch
from torch import Tensor

from genpool.errors import InputError
from genpool.tensors.dropout import dropout_disabled
from genpool.tensors.threads import map_threaded

Item = TypeVar("Item")

#: batches whose results are returned together
WINDOW_BATCHES = 64
#: batches that are sorted by length together
SORT_BATCHES = 32
#: where sentences are long a batch holds fewer: at most batch_size times this many padded tokens
PADDED_TOKENS_PER_SENTENCE = 128


def length_groups(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Yields positions of sentences of similar length, at most batch_size together.

    The shortest come first. A group never has more than batch_size * PADDED_TOKENS_PER_SENTENCE
    tokens, padding included, unless it is a single sentence: memory is bounded for any texts.
    """
    max_padded = batch_size * PADDED_TOKENS_PER_SENTENCE
    group: list[int] = []
    for position in sorted(range(len(lengths)), key=lengths.__getitem__):
        padded = (len(group) + 1) * lengths[position]
        if group and (len(group) == batch_size or padded > max_padded):
            yield group
            group = []
        group.append(position)
    if group:
        yield group


def require_batch_size(batch_size: int) -> None:
    """Raises InputError if batch_size is below 1."""
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; expected 1 or more.")


def map_by_length(
    items: Iterable[Item],
    length: Callable[[Item], int],
    run: Callable[[list[Item]], Tensor],
    batch_size: int,
    done: Callable[[int], object] = lambda count: None,
    threads: int = 1,
) -> Iterator[Tensor]:
    """Calls `run` with groups of similar length; yields its rows in the order of the items.

    Args:
        items: any iterable; it is read one window of batches at a time.
        length: returns the length of an item.
        run: returns one row for each item of a group.
        batch_size: items per group.
        done: called with the size of every finished group, for a progress bar.
        threads: groups that run at the same time, each on one thread. Default: 1.

    Raises:
        InputError: batch_size is below 1.
    """
    require_batch_size(batch_size)
    stream = iter(items)
    while True:
        window = islice(stream, WINDOW_BATCHES * batch_size)
        rows = _map_window(window, length, run, batch_size, done, threads)
        if rows is None:
            return
        yield rows


def _map_window(
    window: Iterator[Item],
    length: Callable[[Item], int],
    run: Callable[[list[Item]], Tensor],
    batch_size: int,
    done: Callable[[int], object],
    threads: int,
) -> Tensor | None:
    """Returns the rows of a window in order; None if it is empty."""
    order: list[list[int]] = []  # the positions of every group that was started

    def groups() -> Iterator[list[Item]]:
        before = 0
        # In parts: while threads run one part, the next one is read and split into words.
        while part := list(islice(window, SORT_BATCHES * batch_size)):
            for group in length_groups([length(item) for item in part], batch_size):
                order.append([before + position for position in group])
                yield [part[position] for position in group]
            before += len(part)

    chunks: list[Tensor] = []
    results = map(run, groups()) if threads == 1 else map_threaded(run, groups(), threads)
    for chunk in results:
        expected = len(order[len(chunks)])
        if len(chunk) != expected:
            raise ValueError(f"{expected} sentences went in, {len(chunk)} rows came out")
        chunks.append(chunk)
        done(expected)
    if not chunks:
        return None
    rows = chunks[0].new_empty(sum(map(len, chunks)), *chunks[0].shape[1:])
    for group, chunk in zip(order, chunks, strict=True):
        rows[torch.tensor(group, device=rows.device)] = chunk
    return rows


@contextmanager
def evaluation_mode() -> Iterator[None]:
    """No dropout and no gradients inside, in the current thread; no module is changed.

    A model in training mode can therefore be used by several threads at once. This is for genpool's
    models, whose only layers that differ in training are `genpool.tensors.dropout.Dropout`.
    """
    with torch.no_grad(), dropout_disabled():
        yield
