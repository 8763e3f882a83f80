"""Requests that arrive together are processed together, under a bounded queue."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic
from typing import Generic, TypeVar

from genpool.service.http import ServiceError, overloaded

#: clients that were just answered often ask again at once; the next batch waits this many windows
#: for them, because a batch of all clients takes less time than two halves
RETURN_WINDOWS = 5
#: a request that waited longer is asked whether somebody still waits, which takes a little time
PATIENCE_SECONDS = 0.1

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass
class Job(Generic[Item, Result]):
    """Items of one request, and where their results go."""

    items: list[Item]
    abandoned: Callable[[], Awaitable[bool]] | None
    results: asyncio.Future[list[Result]]
    arrival: float = field(default_factory=monotonic)


@dataclass
class Batcher(Generic[Item, Result]):
    """Collects the items of several requests into one call of `process`, on the executor.

    `process` returns one result for each item, in order; all methods belong to one event loop. A
    call has at most `batch_items`, or one request. At most `max_queued` items may wait, but a
    request that finds nothing waiting is always accepted. The first request of a call waits
    `window_seconds` for others. `observe` gets the number of items of every call, for metrics.
    """

    process: Callable[[list[Item]], list[Result]]
    executor: Executor
    batch_items: int
    max_queued: int
    window_seconds: float
    observe: Callable[[int], object] = lambda items: None

    def __post_init__(self) -> None:
        self._jobs: deque[Job[Item, Result]] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._full = asyncio.Event()
        self.queued = 0
        #: clients that were there a moment ago
        self._expected_jobs, self._last_end = 0, 0.0

    async def submit(
        self, items: list[Item], abandoned: Callable[[], Awaitable[bool]] | None = None
    ) -> list[Result]:
        """Returns the results of one or more items, in order, or raises what `process` raised.

        `abandoned` returns whether nobody waits any more; it is asked before the work, if the items
        had to wait for long. ServiceError if nobody does, or if too many items are waiting.
        """
        if self.queued and self.queued + len(items) > self.max_queued:
            raise overloaded()
        job = Job(items, abandoned, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self.queued += len(items)
        if self._is_full():
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
        with suppress(TimeoutError):
            await asyncio.wait_for(self._full.wait(), rest)

    def _is_full(self) -> bool:
        """Returns whether waiting for more jobs has no use."""
        return self.queued >= self.batch_items or 1 < self._expected_jobs <= len(self._jobs)

    async def _take(self) -> list[Job[Item, Result]]:
        """Removes the next jobs from the queue, without those that nobody waits for."""
        jobs: list[Job[Item, Result]] = []
        count = 0
        while self._jobs and (not jobs or count + len(self._jobs[0].items) <= self.batch_items):
            job = self._jobs.popleft()
            self.queued -= len(job.items)
            if job.results.done():  # cancelled
                continue
            try:
                has_waited = monotonic() - job.arrival >= PATIENCE_SECONDS
                if has_waited and job.abandoned is not None and await job.abandoned():
                    # Nobody reads it; it is what log and metrics say of a client that hung up.
                    raise ServiceError(408, "client_disconnected", "The client hung up.")
            except Exception as error:
                _fail(job, error)
            else:
                jobs.append(job)
                count += len(job.items)
        return jobs

    async def _run(self, jobs: list[Job[Item, Result]]) -> None:
        items = [item for job in jobs for item in job.items]
        self.observe(len(items))
        loop = asyncio.get_running_loop()
        try:
            results = iter(await loop.run_in_executor(self.executor, self.process, items))
        except Exception as error:
            if len(jobs) == 1:
                _fail(jobs[0], error)
                return
            for job in jobs:  # one by one: a request must not fail because of another's sentence
                await self._run([job])
            return
        for job in jobs:
            part = list(islice(results, len(job.items)))
            if not job.results.done():
                job.results.set_result(part)


def _fail(job: Job[Item, Result], error: Exception) -> None:
    if not job.results.done():
        job.results.set_exception(error)
