"""HTTP around the endpoints: errors as answers of OpenAI's shape, with a sentence that says what to
do; the key, security headers, limits, and metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from hmac import compare_digest
from http import HTTPStatus
from time import perf_counter
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from genpool.service.served_model import ServiceSettings

logger = logging.getLogger("genpool.service")

#: nothing from other hosts, no code or style inside the page itself, no frames around it
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
#: the headers of every answer
HEADERS = [
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
]
#: what everybody may read: a page without data, readiness, and the description of the service
OPEN_PATHS = ("/", "/healthz", "/openapi.json")
OPEN_FOLDER = "/static/"
#: a body that is too large is read and dropped up to this multiple of the limit, because a client
#: that is still sending does not read the answer
DRAINED_BODIES = 16
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)


def json_response(content: object, status: int = 200, headers: Any = None) -> Response:
    """Returns JSON, written by compiled code; vectors are long lists of numbers."""
    return Response(to_json(content), status, headers, media_type="application/json")


class ServiceError(Exception):
    """An answer with a code for programs and a message for people; `param` is the field."""

    def __init__(self, status: int, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.param = status, code, message, param

    def response(self) -> Response:
        """Returns the answer to the client."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        headers = {503: {"Retry-After": "1"}, 401: {"WWW-Authenticate": "Bearer"}}
        return json_response({"error": error}, self.status, headers.get(self.status))


def overloaded() -> ServiceError:
    """Returns the error of a service that has as much to do as it may have."""
    message = "The service is busy: too many requests are waiting. Try again in a second."
    return ServiceError(503, "overloaded", message)


async def answer_error(request: Request, error: Exception) -> Response:
    """Returns the answer to a request that raised an exception; never a stack trace."""
    if isinstance(error, RequestValidationError):
        error = _invalid(error.errors())
    elif isinstance(error, HTTPException):
        status = HTTPStatus(error.status_code)
        code = status.name.lower()
        message = f"{request.method} {request.url.path}: {status.phrase}; see /openapi.json."
        if status == HTTPStatus.BAD_REQUEST:
            code, message = "invalid_json", "The body is not JSON in UTF-8."
        error = ServiceError(status, code, message)
    elif not isinstance(error, ServiceError):
        logger.error("unexpected error", exc_info=error)
        message = "The service failed to answer this request; its log says more."
        error = ServiceError(500, "internal_error", message)
    return error.response()


ERROR_HANDLERS: dict[int | type[Exception], Any] = dict.fromkeys(
    (ServiceError, RequestValidationError, HTTPException, Exception), answer_error
)


def _invalid(errors: Sequence[Mapping[str, Any]]) -> ServiceError:
    """Returns the error of a body that does not fit; the client's own input is never repeated."""
    first = errors[0]
    if first["type"] == "json_invalid":
        reason = str(first.get("ctx", {}).get("error", "it cannot be parsed"))
        message = f"The body is not JSON: {reason}. Expected an object, see /openapi.json."
        return ServiceError(400, "invalid_json", message)
    param = next((str(part) for part in first["loc"] if part != "body"), None)
    where = param or "The body is no JSON object with Content-Type application/json"
    reasons = "; or ".join(dict.fromkeys(str(error["msg"]) for error in errors))
    return ServiceError(422, "invalid_request", f"{where}: {reasons}.", param)


class Metrics:
    """The counters of one service, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        own: Any = {"namespace": "genpool", "registry": self.registry}
        self.requests = Counter("requests", "Finished requests.", ["path", "status"], **own)
        what = "Seconds from the first byte of a request to the last of its answer."
        self.seconds = Histogram("request_seconds", what, ["path"], buckets=SECONDS, **own)
        what = "Sentences or examples that were processed together."
        self.batches = Histogram("batch_items", what, ["work"], buckets=BATCH_SIZES, **own)
        what = "Sentences or examples that wait for their turn."
        self.queued = Gauge("queued_items", what, ["work"], **own)


class Gate:
    """ASGI middleware: calls the application for a request with the key whose body is complete and
    small enough, measures every request, and adds the security headers to every answer."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings, metrics: Metrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics
        self.buffered_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = perf_counter(), "no answer"
        chunks: list[bytes] = []
        body: list[Message] = []

        async def replay() -> Message:
            return body.pop() if body else await receive()

        async def respond(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        try:
            self._require_key(scope)
            await self._read(scope, receive, chunks)
            body = [{"type": "http.request", "body": b"".join(chunks), "more_body": False}]
            await self.app(scope, replay, respond)
        except ServiceError as error:
            await error.response()(scope, receive, respond)
        except ClientDisconnect:
            return
        finally:
            self.buffered_bytes -= sum(map(len, chunks))
            # The path of the route, not of the request: clients could invent any number of these.
            path = getattr(scope.get("route"), "path", "other")
            self.metrics.requests.labels(path, status).inc()
            self.metrics.seconds.labels(path).observe(perf_counter() - start)

    def _require_key(self, scope: Scope) -> None:
        key, path = self.settings.api_key, scope["path"]
        if key is None or path in OPEN_PATHS or path.startswith(OPEN_FOLDER):
            return
        sent = dict(scope["headers"]).get(b"authorization", b"")
        # In constant time: how long it takes must not show how much of a key is right.
        if not compare_digest(sent, f"Bearer {key}".encode()):
            text = "The key is missing or wrong; expected the header Authorization: Bearer KEY."
            raise ServiceError(401, "unauthorized", text)

    async def _read(self, scope: Scope, receive: Receive, chunks: list[bytes]) -> None:
        """Appends the parts of the body to `chunks`, which count as buffered."""
        limit, seconds = self.settings.max_body_bytes, self.settings.body_timeout_seconds
        size = 0
        try:
            async with asyncio.timeout(seconds):
                async for chunk in Request(scope, receive).stream():
                    size += len(chunk)
                    if size > DRAINED_BODIES * limit:
                        break
                    if size > limit:
                        continue
                    if self.buffered_bytes + len(chunk) > self.settings.max_buffered_bytes:
                        raise overloaded()
                    self.buffered_bytes += len(chunk)
                    chunks.append(chunk)
        except TimeoutError:
            text = f"The body did not arrive within {seconds:g} seconds; send it in parts."
            raise ServiceError(408, "request_timeout", text) from None
        if size > limit:
            least = "more than " if size > DRAINED_BODIES * limit else ""
            text = (
                f"The body has {least}{size:,} bytes; expected at most {limit:,}. Send the "
                "sentences in several requests."
            )
            raise ServiceError(413, "body_too_large", text)
