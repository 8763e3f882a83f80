"""Running a model over many sentences: sorted by length, returned in order, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

import torch
from torch import Tensor, nn

from genpool.errors import InputError

Item = TypeVar("Item")

#: batches that are sorted by length together
WINDOW = 64
#: where sentences are long a batch holds fewer of them: batch_size * LONG tokens at the most
LONG = 128


def length_groups(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Positions of sentences of like length, at most batch_size together, shortest first.

    A group never holds more than batch_size * LONG positions, padding included, unless it is a
    single sentence: memory is bounded whatever the texts.
    """
    group: list[int] = []
    for position in sorted(range(len(lengths)), key=lengths.__getitem__):
        padded = (len(group) + 1) * lengths[position]
        if group and (len(group) == batch_size or padded > batch_size * LONG):
            yield group
            group = []
        group.append(position)
    if group:
        yield group


def in_order(
    items: Iterable[Item],
    length: Callable[[Item], int],
    run: Callable[[list[Item]], Tensor],
    batch_size: int,
    done: Callable[[int], object] = lambda count: None,
) -> Iterator[Tensor]:
    """`run` over groups of like length; yields its rows in the order of the items, in chunks.

    done: told how many items each group had, for a progress bar.
    """
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; expected 1 or more.")
    stream = iter(items)
    while window := list(islice(stream, WINDOW * batch_size)):
        rows: list[Tensor | None] = [None] * len(window)
        for group in length_groups([length(item) for item in window], batch_size):
            results = run([window[position] for position in group])
            for position, row in zip(group, results, strict=True):
                rows[position] = row
            done(len(group))
        yield torch.stack([row for row in rows if row is not None])


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """No dropout and no gradients inside; the mode of every part is as before afterwards."""
    training = [part for part in model.modules() if part.training]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part in training:
            part.training = True
