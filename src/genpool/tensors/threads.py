"""Several pieces of work at once, each on its own thread.

The two directions of an LSTM are equal, independent work. On two threads they are synchronized
once, at the end; splitting every small operation over two cores would synchronize at each of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
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
    """Returns the results of two functions, computed in parallel if the CPU has threads for it.

    No gradient is recorded inside: this is for the inside of autograd functions.
    """
    threads = torch.get_num_threads()
    if device.type != "cpu" or threads == 1:
        with torch.no_grad():
            return first(), second()
    half = max(1, threads // 2)  # both run at the same time
    with torch_threads(half), torch.no_grad():
        other = _worker().submit(_without_gradient, second, half)
        return first(), other.result()


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """PyTorch uses this number of threads inside, in the current thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def map_threaded(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    """Yields the results of all items, in order; each item is processed by a single thread.

    Small operations gain nothing from being split over threads; processing several batches at once
    does. Only a few results are kept waiting, however many items there are.
    """
    if threads == 1:
        yield from map(work, items)
        return
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    with torch_threads(1), pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:  # an error, or the generator was closed
            for future in waiting:
                future.cancel()


def _without_gradient(work: Callable[[], Second], threads: int) -> Second:
    # Both settings are per thread: a new one starts with torch's defaults.
    torch.set_num_threads(threads)
    with torch.no_grad():
        return work()


@cache
def _worker() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="genpool-direction")
