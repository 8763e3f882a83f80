"""What a service counts, in the format of Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)


class Metrics:
    """The counters of one service, in a registry of its own.

    Attributes:
        requests: finished requests, by path and status.
        seconds: how long they took, by path.
        batches: the sizes of the batches, by kind of work.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        names = ["path", "status"]
        self.requests = Counter(
            "genpool_requests", "Finished requests.", names, registry=self.registry
        )
        self.seconds = Histogram(
            "genpool_request_seconds",
            "Time from the first byte of a request to the last of its answer.",
            ["path"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.batches = Histogram(
            "genpool_batch_items",
            "Sentences or examples that were processed together.",
            ["work"],
            buckets=BATCH_SIZES,
            registry=self.registry,
        )
        self._queued = Gauge(
            "genpool_queued_items",
            "Sentences or examples that wait for their turn.",
            ["work"],
            registry=self.registry,
        )

    def observe_batches(self, work: str) -> Callable[[int], None]:
        """Returns a function that counts the sizes of one kind of work."""
        return self.batches.labels(work).observe

    def watch_queue(self, work: str, queued: Callable[[], int]) -> None:
        """Reports the length of a queue whenever the metrics are read."""
        self._queued.labels(work).set_function(queued)

    def text(self) -> bytes:
        """Returns all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class MeasuredRequests:
    """ASGI middleware that counts requests and their time.

    Args:
        app: the application.
        metrics: where to count.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = perf_counter(), "no answer"

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            # The path of the route, not of the request: clients could invent any number of these.
            path = getattr(scope.get("route"), "path", "other")
            self.metrics.requests.labels(path, status).inc()
            self.metrics.seconds.labels(path).observe(perf_counter() - start)
