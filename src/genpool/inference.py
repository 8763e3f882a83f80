"""Running a model over many sentences: sorted by length, returned in order, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

import torch
from torch import Tensor, nn

from genpool.errors import InputError
from genpool.threads import side_by_side

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
    threads: int = 1,
) -> Iterator[Tensor]:
    """`run` over groups of like length; yields its rows in the order of the items, in chunks.

    done: told how many items each group had, for a progress bar. threads: how many groups `run`
    works at side by side, each on one thread.
    """
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; expected 1 or more.")
    stream = iter(items)
    while window := list(islice(stream, WINDOW * batch_size)):
        yield _window(window, length, run, batch_size, done, threads)


def _window(
    window: list[Item],
    length: Callable[[Item], int],
    run: Callable[[list[Item]], Tensor],
    batch_size: int,
    done: Callable[[int], object],
    threads: int,
) -> Tensor:
    groups = list(length_groups([length(item) for item in window], batch_size))
    given = ([window[position] for position in group] for group in groups)
    rows: Tensor | None = None
    for group, results in zip(groups, side_by_side(run, given, threads), strict=True):
        if len(results) != len(group):
            raise ValueError(f"{len(group)} sentences went in, {len(results)} rows came out")
        if rows is None:
            rows = results.new_empty(len(window), *results.shape[1:])
        rows[torch.tensor(group, device=rows.device)] = results
        done(len(group))
    if rows is None:
        raise ValueError("an empty window has no rows")
    return rows


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
