"""Pieces of work at once, each on a thread of its own.

The two directions of an LSTM are equal work that never meets. On two threads they need no
synchronisation until the end, where splitting every small operation over two cores would need one
each time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")
First = TypeVar("First")
Second = TypeVar("Second")


def run_both(
    first: Callable[[], First], second: Callable[[], Second], device: torch.device
) -> tuple[First, Second]:
    """The results of two functions, computed side by side where the CPU has threads for it.

    No gradient is recorded inside: this is for the inside of autograd functions.
    """
    threads = torch.get_num_threads()
    if device.type != "cpu" or threads == 1:
        with torch.no_grad():
            return first(), second()
    # The second thread counts for the first one's operations too: both get one half.
    torch.set_num_threads(max(1, threads // 2))
    try:
        with torch.no_grad():
            other = _worker().submit(_without_gradient, second, max(1, threads // 2))
            return first(), other.result()
    finally:
        torch.set_num_threads(threads)


def map_threaded(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    """The results of all items, in order; each item is worked at by one thread alone.

    Many small operations gain nothing from being split; whole batches side by side do. Few results
    wait at a time, however many items there are.
    """
    if threads == 1:
        yield from map(work, items)
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    waiting: deque[Future[Result]] = deque()
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            try:
                for item in items:
                    waiting.append(pool.submit(work, item))
                    if len(waiting) > 2 * threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:  # an error, or nobody wants the rest
                for each in waiting:
                    each.cancel()
    finally:
        torch.set_num_threads(before)


def _without_gradient(work: Callable[[], Second], threads: int) -> Second:
    # Both settings belong to a thread: a new one starts with torch's defaults.
    torch.set_num_threads(threads)
    with torch.no_grad():
        return work()


@cache
def _worker() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="genpool-direction")
