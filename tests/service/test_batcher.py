"""Requests that arrive together are processed together, and none waits for ever."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from genpool.service.batcher import PATIENCE_SECONDS, Batcher
from genpool.service.http import ServiceError


class Doubling:
    """Doubles numbers, notes the batches, and can be held back."""

    def __init__(self, executor: ThreadPoolExecutor) -> None:
        self.executor = executor
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

    def batcher(self, **options: Any) -> Batcher[int, int]:
        limits = {"batch_items": 100, "max_queued": 100, "window_seconds": 0.05}
        return Batcher(self, self.executor, **{**limits, **options})

    def submit(self, *requests: list[int], **options: Any) -> list[Any]:
        """The results or the errors of requests that arrive together at a new batcher."""

        async def run() -> list[Any]:
            batcher = self.batcher(**options)
            submitted = (batcher.submit(items) for items in requests)
            results = await asyncio.gather(*submitted, return_exceptions=True)
            assert batcher.queued == 0
            return results

        return asyncio.run(run())


@pytest.fixture
def work() -> Iterator[Doubling]:
    with ThreadPoolExecutor(1) as executor:
        yield Doubling(executor)


def test_requests_that_arrive_together_are_one_batch(work: Doubling) -> None:
    sizes: list[int] = []
    results = work.submit(*([n, n + 10] for n in range(5)), observe=sizes.append)
    assert results == [[2 * n, 2 * n + 20] for n in range(5)]
    assert work.batches == [[0, 10, 1, 11, 2, 12, 3, 13, 4, 14]] and sizes == [10]
    batcher = work.batcher(window_seconds=0.001)
    for number in range(3):  # of one event loop after the other
        assert asyncio.run(batcher.submit([number])) == [2 * number]


def test_what_arrives_while_a_batch_runs_is_the_next_batch(work: Doubling) -> None:
    work.free.clear()

    async def run() -> None:
        batcher = work.batcher(window_seconds=0)
        first = asyncio.create_task(batcher.submit([1]))
        while not work.started.is_set():
            await asyncio.sleep(0.001)
        others = [asyncio.create_task(batcher.submit([n])) for n in (2, 3, 4)]
        await asyncio.sleep(0)
        work.free.set()
        assert await asyncio.gather(first, *others) == [[2], [4], [6], [8]]

    asyncio.run(run())
    assert work.batches == [[1], [2, 3, 4]]


def test_batches_the_queue_and_errors_have_limits(work: Doubling) -> None:
    work.submit([1], [2], batch_items=2, window_seconds=3600)  # an hour later if it waited
    assert work.batches == [[1, 2]]
    work.submit(*([n] * 3 for n in range(3)), [9] * 7, batch_items=4)
    assert [len(batch) for batch in work.batches[1:]] == [3, 3, 3, 7]  # one request is not divided
    first, second, *others = work.submit(*([n, n] for n in range(4)), max_queued=5)
    assert [first, second] == [[0, 0], [2, 2]]
    assert [type(other) for other in others] == [ServiceError, ServiceError]
    assert work.submit([1, 2, 3], max_queued=2) == [[2, 4, 6]]  # nothing else was waiting
    first, error, last = work.submit([1], [-1], [2])  # it reaches only the request that caused it
    assert (first, last) == ([2], [4]) and isinstance(error, ValueError)


def test_who_has_left_costs_no_work(work: Doubling) -> None:
    async def gone() -> bool:
        return True

    async def broken() -> bool:
        raise OSError("connection reset")

    async def run() -> list[object]:
        batcher = work.batcher(window_seconds=2 * PATIENCE_SECONDS)
        submitted = [batcher.submit([1], gone), batcher.submit([2]), batcher.submit([3], broken)]
        return await asyncio.gather(*submitted, return_exceptions=True)

    left, stayed, lost = asyncio.run(run())
    assert isinstance(left, ServiceError) and isinstance(lost, OSError)
    assert stayed == [4] and work.batches == [[2]]


def test_a_cancelled_request_costs_no_work(work: Doubling) -> None:
    async def run() -> None:
        batcher = work.batcher()
        cancelled = asyncio.create_task(batcher.submit([1]))
        kept = asyncio.create_task(batcher.submit([2]))
        await asyncio.sleep(0)
        cancelled.cancel()
        assert await kept == [4]
        with pytest.raises(asyncio.CancelledError):
            await cancelled

    asyncio.run(run())
    assert work.batches == [[2]]
