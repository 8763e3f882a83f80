"""Running a model over many sentences: sorted by length, returned in order, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

import torch
from torch import Tensor, nn

from genpool.errors import InputError
from genpool.tensors.threads import map_threaded

Item = TypeVar("Item")

#: batches whose results are given together
WINDOW = 64
#: batches that are sorted by length together
PART = 32
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


def map_by_length(
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
    while True:
        rows = _window(islice(stream, WINDOW * batch_size), length, run, batch_size, done, threads)
        if rows is None:
            return
        yield rows


def _window(
    window: Iterator[Item],
    length: Callable[[Item], int],
    run: Callable[[list[Item]], Tensor],
    batch_size: int,
    done: Callable[[int], object],
    threads: int,
) -> Tensor | None:
    """The rows of a window in order; None where it is empty."""
    order: list[list[int]] = []  # the positions of every group that was begun

    def groups() -> Iterator[list[Item]]:
        before = 0
        # Part by part: while threads work at one part, the next one is read and split into words.
        while part := list(islice(window, PART * batch_size)):
            for group in length_groups([length(item) for item in part], batch_size):
                order.append([before + position for position in group])
                yield [part[position] for position in group]
            before += len(part)

    found: list[Tensor] = []
    for results in map_threaded(run, groups(), threads):
        expected = len(order[len(found)])
        if len(results) != expected:
            raise ValueError(f"{expected} sentences went in, {len(results)} rows came out")
        found.append(results)
        done(expected)
    if not found:
        return None
    rows = found[0].new_empty(sum(map(len, found)), *found[0].shape[1:])
    for group, results in zip(order, found, strict=True):
        rows[torch.tensor(group, device=rows.device)] = results
    return rows


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """No dropout and no gradients inside; the mode of every part is as before afterwards."""
    training = [part for part in model.modules() if part.training]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part in training:
            part.training = True
