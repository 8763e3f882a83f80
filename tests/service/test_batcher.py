"""Requests that arrive together are processed together, and none waits for ever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from genpool.service.batcher import PATIENCE_SECONDS, AbandonedError, Batcher, QueueFullError


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


class Doubling:
    """Doubles numbers, notes the batches, and can be held back."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.started, self.free = threading.Event(), threading.Event()
        self.free.set()

    def __call__(self, items: list[int]) -> list[int]:
        self.started.set()
        self.free.wait()
        self.batches.append(items)
        if any(item < 0 for item in items):
            raise ValueError("negative")
        return [2 * item for item in items]


def batcher_of(
    work: Doubling,
    executor: ThreadPoolExecutor,
    batch_items: int = 100,
    max_queued: int = 100,
    window_seconds: float = 0.05,
) -> Batcher[int, int]:
    return Batcher(work, executor, batch_items, max_queued, window_seconds)


def test_requests_that_arrive_together_are_one_batch(executor: ThreadPoolExecutor) -> None:
    work = Doubling()

    async def run() -> list[list[int]]:
        batcher = batcher_of(work, executor)
        return await asyncio.gather(*(batcher.submit([n, n + 10]) for n in range(5)))

    assert asyncio.run(run()) == [[2 * n, 2 * n + 20] for n in range(5)]
    assert work.batches == [[0, 10, 1, 11, 2, 12, 3, 13, 4, 14]]


def test_what_arrives_while_a_batch_runs_is_the_next_batch(executor: ThreadPoolExecutor) -> None:
    work = Doubling()
    work.free.clear()

    async def run() -> None:
        batcher = batcher_of(work, executor, window_seconds=0)
        first = asyncio.create_task(batcher.submit([1]))
        while not work.started.is_set():
            await asyncio.sleep(0.001)
        others = [asyncio.create_task(batcher.submit([n])) for n in (2, 3, 4)]
        await asyncio.sleep(0)
        work.free.set()
        assert await asyncio.gather(first, *others) == [[2], [4], [6], [8]]

    asyncio.run(run())
    assert work.batches == [[1], [2, 3, 4]]


def test_a_full_batch_does_not_wait_for_the_window(executor: ThreadPoolExecutor) -> None:
    work = Doubling()

    async def run() -> None:
        batcher = batcher_of(work, executor, batch_items=2, window_seconds=3600)
        await asyncio.gather(batcher.submit([1]), batcher.submit([2]))

    asyncio.run(run())  # an hour later otherwise
    assert work.batches == [[1, 2]]


def test_batches_are_not_larger_than_they_may_be(executor: ThreadPoolExecutor) -> None:
    work = Doubling()

    async def run() -> None:
        batcher = batcher_of(work, executor, batch_items=4)
        await asyncio.gather(*(batcher.submit([n] * 3) for n in range(3)), batcher.submit([9] * 7))

    asyncio.run(run())
    assert [len(batch) for batch in work.batches] == [3, 3, 3, 7]  # one request is never divided


def test_beyond_the_queue_requests_are_refused(executor: ThreadPoolExecutor) -> None:
    work = Doubling()

    async def run() -> list[object]:
        batcher = batcher_of(work, executor, max_queued=5)
        submitted = [batcher.submit([n, n]) for n in range(4)]
        return await asyncio.gather(*submitted, return_exceptions=True)

    first, second, *others = asyncio.run(run())
    assert [first, second] == [[0, 0], [2, 2]]
    assert [type(other) for other in others] == [QueueFullError, QueueFullError]


def test_a_request_larger_than_the_queue_is_accepted_when_nothing_waits(
    executor: ThreadPoolExecutor,
) -> None:
    work = Doubling()

    async def run() -> list[int]:
        batcher = batcher_of(work, executor, max_queued=2)
        results = await batcher.submit([1, 2, 3])
        assert batcher.queued == 0
        return results

    assert asyncio.run(run()) == [2, 4, 6]


def test_an_error_reaches_only_the_request_that_caused_it(executor: ThreadPoolExecutor) -> None:
    work = Doubling()

    async def run() -> list[object]:
        batcher = batcher_of(work, executor)
        submitted = [batcher.submit([n]) for n in (1, -1, 2)]
        return await asyncio.gather(*submitted, return_exceptions=True)

    first, error, last = asyncio.run(run())
    assert (first, last) == ([2], [4])
    assert isinstance(error, ValueError)


def test_who_has_left_costs_no_work(executor: ThreadPoolExecutor) -> None:
    work = Doubling()

    async def gone() -> bool:
        return True

    async def broken() -> bool:
        raise OSError("connection reset")

    async def run() -> list[object]:
        batcher = batcher_of(work, executor, window_seconds=2 * PATIENCE_SECONDS)
        submitted = [batcher.submit([1], gone), batcher.submit([2]), batcher.submit([3], broken)]
        return await asyncio.gather(*submitted, return_exceptions=True)

    left, stayed, lost = asyncio.run(run())
    assert isinstance(left, AbandonedError) and isinstance(lost, OSError)
    assert stayed == [4] and work.batches == [[2]]


def test_a_cancelled_request_costs_no_work(executor: ThreadPoolExecutor) -> None:
    work = Doubling()

    async def run() -> None:
        batcher = batcher_of(work, executor)
        cancelled = asyncio.create_task(batcher.submit([1]))
        kept = asyncio.create_task(batcher.submit([2]))
        await asyncio.sleep(0)
        cancelled.cancel()
        assert await kept == [4]
        with pytest.raises(asyncio.CancelledError):
            await cancelled

    asyncio.run(run())
    assert work.batches == [[2]]


def test_one_batcher_serves_one_event_loop_after_the_other(executor: ThreadPoolExecutor) -> None:
    work = Doubling()
    batcher = batcher_of(work, executor, window_seconds=0.001)
    for number in range(3):
        assert asyncio.run(batcher.submit([number])) == [2 * number]


def test_the_sizes_of_batches_are_observed(executor: ThreadPoolExecutor) -> None:
    sizes: list[int] = []
    batcher = Batcher(Doubling(), executor, 10, 10, 0.0, sizes.append)
    asyncio.run(batcher.submit([1, 2, 3]))
    assert sizes == [3]
