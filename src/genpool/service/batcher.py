"""Requests that arrive together are processed together, under a bounded queue."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from time import monotonic
from typing import Generic, TypeVar

#: clients that were just answered often ask again at once; the next batch waits this many windows
#: for them, because a batch of all clients takes less time than two halves
RETURN_WINDOWS = 5
#: a request that waited longer is asked whether somebody still waits for it; asking takes as long
#: as encoding a word
PATIENCE_SECONDS = 0.1

Item = TypeVar("Item")
Result = TypeVar("Result")


class QueueFullError(Exception):
    """So many items are waiting that no more are accepted."""


class AbandonedError(Exception):
    """Whoever asked has left before the work was started."""


async def never_abandoned() -> bool:
    """Returns that somebody waits for the result."""
    return False


@dataclass
class Job(Generic[Item, Result]):
    """Items of one request, and where their results go."""

    items: list[Item]
    abandoned: Callable[[], Awaitable[bool]]
    results: asyncio.Future[list[Result]]
    arrival: float = field(default_factory=monotonic)


class Batcher(Generic[Item, Result]):
    """Collects the items of several requests into one call.

    All methods belong to one event loop; only `process` runs on the executor.

    Args:
        process: returns one result for each item, in order.
        executor: where `process` is called.
        batch_items: items of a call; a single request may have more.
        max_queued: items that may wait. A request that finds nothing waiting is always accepted.
        window_seconds: how long the first request of a call waits for others.
        observe: called with the number of items of every call, for metrics.
    """

    def __init__(
        self,
        process: Callable[[list[Item]], list[Result]],
        executor: Executor,
        batch_items: int,
        max_queued: int,
        window_seconds: float,
        observe: Callable[[int], object] = lambda items: None,
    ) -> None:
        self._process, self._executor = process, executor
        self.batch_items, self.max_queued = batch_items, max_queued
        self.window_seconds, self._observe = window_seconds, observe
        self._jobs: deque[Job[Item, Result]] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._full: asyncio.Event | None = None
        self.queued = 0
        #: clients that were there a moment ago
        self._expected_jobs, self._last_end = 0, 0.0

    async def submit(
        self, items: list[Item], abandoned: Callable[[], Awaitable[bool]] = never_abandoned
    ) -> list[Result]:
        """Returns the results of the items, in order.

        Args:
            items: one or more items.
            abandoned: returns whether nobody waits any more; asked before the work, if the items
                had to wait for long.

        Raises:
            QueueFullError: too many items are waiting.
            AbandonedError: nobody waits any more.
            Exception: whatever `process` raised for these items.
        """
        if self.queued and self.queued + len(items) > self.max_queued:
            raise QueueFullError(f"{self.queued} are waiting")
        job = Job(items, abandoned, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self.queued += len(items)
        if self._full is not None and self._is_full():
            self._full.set()
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
        return await job.results

    async def _work(self) -> None:
        """Processes batches until nothing is waiting."""
        try:
            while self._jobs:
                await self._wait_for_others()
                jobs = await self._take()
                if jobs:
                    await self._run(jobs)
                self._expected_jobs, self._last_end = len(jobs) + len(self._jobs), monotonic()
                # Lets those who were answered ask again, before the next batch is put together.
                await asyncio.sleep(0)
        finally:
            self._worker = None
            while self._jobs:  # only if the loop is ending: nobody may wait for ever
                self._jobs.popleft().results.cancel()
            self.queued = 0

    async def _wait_for_others(self) -> None:
        """Waits a moment for more jobs, unless there are as many as can be expected."""
        end = self._jobs[0].arrival + self.window_seconds
        if len(self._jobs) < self._expected_jobs:
            end = max(end, self._last_end + RETURN_WINDOWS * self.window_seconds)
        rest = end - monotonic()
        if rest <= 0 or self._is_full():
            return
        self._full = asyncio.Event()
        try:
            async with asyncio.timeout(rest):
                await self._full.wait()
        except TimeoutError:
            return

    def _is_full(self) -> bool:
        """Returns whether waiting for more jobs has no use."""
        expected = self._expected_jobs
        return self.queued >= self.batch_items or 1 < expected <= len(self._jobs)

    async def _take(self) -> list[Job[Item, Result]]:
        """Removes the next jobs from the queue, without those that nobody waits for."""
        jobs: list[Job[Item, Result]] = []
        count = 0
        while self._jobs and (not jobs or count + len(self._jobs[0].items) <= self.batch_items):
            job = self._jobs.popleft()
            self.queued -= len(job.items)
            if job.results.done():  # cancelled
                continue
            if not await self._is_abandoned(job):
                jobs.append(job)
                count += len(job.items)
        return jobs

    async def _is_abandoned(self, job: Job[Item, Result]) -> bool:
        """Returns whether nobody waits for a job, which is then answered with an error."""
        if monotonic() - job.arrival < PATIENCE_SECONDS:
            return False
        try:
            abandoned = await job.abandoned()
        except Exception as error:
            _fail(job, error)
            return True
        if abandoned:
            _fail(job, AbandonedError())
        return abandoned

    async def _run(self, jobs: list[Job[Item, Result]]) -> None:
        items = [item for job in jobs for item in job.items]
        self._observe(len(items))
        loop = asyncio.get_running_loop()
        try:
            results = await loop.run_in_executor(self._executor, self._process, items)
        except Exception as error:
            if len(jobs) == 1:
                _fail(jobs[0], error)
                return
            for job in jobs:  # one by one: a request must not fail because of another's sentence
                await self._run([job])
            return
        start = 0
        for job in jobs:
            end = start + len(job.items)
            if not job.results.done():
                job.results.set_result(results[start:end])
            start = end


def _fail(job: Job[Item, Result], error: Exception) -> None:
    if not job.results.done():
        job.results.set_exception(error)
