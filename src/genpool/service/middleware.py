"""What stands around the endpoints: the key, security headers, limits of a request, and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from hmac import compare_digest
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

from genpool.service.problems import ServiceError, overloaded
from genpool.service.settings import ServiceSettings

#: nothing from other hosts, no code or style inside the page itself, no frames around it
CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
#: what everybody may read: a page without data, readiness, and the description of the service
OPEN_PATHS = ("/", "/healthz", "/openapi.json")
OPEN_FOLDER = "/static/"
#: a body that is too large is read and dropped up to this multiple of the limit, because a client
#: that is still sending does not read the answer
DRAINED_BODIES = 16
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)


class SecurityHeaders:
    """ASGI middleware that adds the headers to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *RAW_HEADERS]
            await send(message)

        await self.app(scope, receive, with_headers)


class KeyCheck:
    """ASGI middleware that refuses requests without the key."""

    def __init__(self, app: ASGIApp, api_key: str) -> None:
        self.app, self.expected = app, f"Bearer {api_key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_open(scope["path"]) or self._has_key(scope):
            await self.app(scope, receive, send)
            return
        message = "The key is missing or wrong; expected the header Authorization: Bearer KEY."
        await ServiceError(401, "unauthorized", message).response()(scope, receive, send)

    def _has_key(self, scope: Scope) -> bool:
        sent = dict(scope["headers"]).get(b"authorization", b"")
        # In constant time: how long it takes must not show how much of a key is right.
        return compare_digest(sent, self.expected)


def is_open(path: str) -> bool:
    """Returns whether a path needs no key."""
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDER)


class DisconnectedError(Exception):
    """The client hung up before the body was complete."""


class BodyLimits:
    """ASGI middleware: the application is called when the body is complete and small enough."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self.app, self.settings = app, settings
        self.buffered_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        chunks: list[bytes] = []
        try:
            if (error := await self._error_of(receive, chunks)) is not None:
                await error.response()(scope, receive, send)
            else:
                await self.app(scope, _replayed(b"".join(chunks), receive), send)
        except DisconnectedError:
            return
        finally:
            self.buffered_bytes -= sum(map(len, chunks))

    async def _error_of(self, receive: Receive, chunks: list[bytes]) -> ServiceError | None:
        """Reads the body into `chunks`; returns what is wrong with it."""
        seconds = self.settings.body_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                await self._read(receive, chunks)
        except TimeoutError:
            message = f"The body did not arrive within {seconds:g} seconds; send it in parts."
            return ServiceError(408, "request_timeout", message)
        except ServiceError as error:
            return error
        return None

    async def _read(self, receive: Receive, chunks: list[bytes]) -> None:
        """Appends the parts of the body to `chunks`, which count as buffered."""
        limit, size, more = self.settings.max_body_bytes, 0, True
        while more and size <= DRAINED_BODIES * limit:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise DisconnectedError
            chunk, more = message.get("body", b""), message.get("more_body", False)
            size += len(chunk)
            if size <= limit:
                self._buffer(chunk, chunks)
        if size > limit:
            given = f"{size:,} bytes" if not more else f"more than {size:,} bytes"
            text = (
                f"The body has {given}; expected at most {limit:,}. Send the sentences in several "
                "requests."
            )
            raise ServiceError(413, "body_too_large", text)

    def _buffer(self, chunk: bytes, chunks: list[bytes]) -> None:
        if self.buffered_bytes + len(chunk) > self.settings.max_buffered_bytes:
            raise overloaded()
        self.buffered_bytes += len(chunk)
        chunks.append(chunk)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Returns a `receive` with the body as its first message."""
    read = False

    async def replay() -> Message:
        nonlocal read
        if read:
            return await receive()
        read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


class Metrics:
    """The counters of one service, in a registry of its own."""

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
    """ASGI middleware that counts requests and their time."""

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
