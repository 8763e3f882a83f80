"""Services of tiny models: in this process, or listening at a port."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx2
import uvicorn
from fastapi import FastAPI

Result = TypeVar("Result")


@contextmanager
def listening(app: FastAPI) -> Iterator[str]:
    """Runs an application in a thread; yields its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    started = threading.Event()
    startup = server.startup

    async def announced(sockets: Any = None) -> None:
        await startup(sockets)
        started.set()

    server.startup = announced  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        if not started.wait(60):
            raise RuntimeError("the service did not start")
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def with_clients(app: FastAPI, use: Callable[[httpx2.AsyncClient], Awaitable[Result]]) -> Result:
    """Returns what `use` does with a client that can send many requests at once."""

    async def run() -> Result:
        transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
            return await use(client)

    return asyncio.run(run())


def post_together(
    app: FastAPI, path: str, bodies: Sequence[object], **options: Any
) -> list[httpx2.Response]:
    """Returns the answers to requests that are sent at the same time."""

    async def use(client: httpx2.AsyncClient) -> list[httpx2.Response]:
        posts = (client.post(path, json=body, **options) for body in bodies)
        return list(await asyncio.gather(*posts))

    return with_clients(app, use)
