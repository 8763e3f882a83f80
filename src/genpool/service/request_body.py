"""Reading the body of a request within limits of size, time and memory."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from genpool.service.problems import ServiceError, overloaded
from genpool.service.settings import ServiceSettings

#: a body that is too large is read and dropped up to this multiple of the limit, because a client
#: that is still sending does not read the answer
DRAINED_BODIES = 16


class DisconnectedError(Exception):
    """The client hung up before the body was complete."""


class BodyLimits:
    """ASGI middleware: the application is called when the body is complete and small enough.

    Args:
        app: the application.
        settings: the limits.
    """

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
