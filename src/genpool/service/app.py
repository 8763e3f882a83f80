"""The application: endpoints, page, limits and errors; and `serve`, which runs it."""

from __future__ import annotations

import gc
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Response
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles

from genpool import __version__
from genpool.errors import InputError
from genpool.service.endpoints import Service, router_of
from genpool.service.http import ERROR_HANDLERS, Gate, json_response
from genpool.service.served_model import ServedModel, ServiceSettings

PAGE = Path(__file__).parent / "page"
#: how long a stopping service waits for the answers to what it has accepted
GRACEFUL_STOP_SECONDS = 30
#: connections that wait to be accepted; a burst of clients must not be refused by the system
BACKLOG_CONNECTIONS = 2048


def create_app(model: ServedModel, settings: ServiceSettings | None = None) -> FastAPI:
    """Returns the service as an ASGI application, for one process of uvicorn or another server.

    Args:
        model: what is served.
        settings: limits, batches and the key. Default: None, the defaults of `ServiceSettings`.

    Example:
        >>> app = create_app(ServedModel.load("runs/rules/best"), ServiceSettings(api_key="secret"))
    """
    settings = settings or ServiceSettings()
    service = Service(model, settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        for executor in service.executors:  # after what they are doing
            executor.shutdown()

    # No pages of Swagger or ReDoc: they load scripts from other hosts.
    app = FastAPI(
        title="genpool",
        version=__version__,
        description="Sentence vectors, similarities, labels and explanations.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        exception_handlers=ERROR_HANDLERS,
    )
    app.include_router(router_of(service))

    @app.get("/healthz", response_model=dict[str, str])
    async def healthz() -> Response:
        """Returns at once that the service is ready, whatever else it does."""
        return json_response({"status": "ok"})

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(PAGE / "index.html")

    app.mount("/static", StaticFiles(directory=PAGE), name="static")
    app.add_middleware(Gate, settings=settings, metrics=service.metrics)
    return app


def serve(
    app: FastAPI,
    host: str = "127.0.0.1",
    port: int = 8000,
    ready: Callable[[str], object] = lambda address: None,
    log_level: str = "warning",
) -> None:
    """Runs an application until SIGINT or SIGTERM; what was accepted is answered first.

    Args:
        app: from `create_app`.
        host: the address to listen at. Default: "127.0.0.1", this machine only.
        port: the port; 0 chooses a free one. Default: 8000.
        ready: called with the address, such as "http://127.0.0.1:8000", before the first request.
        log_level: of uvicorn: "info" prints a line per request. Default: "warning".

    Raises:
        InputError: the address cannot be used, or the port is taken.

    Example:
        >>> serve(create_app(ServedModel.load()), port=8080)
    """
    is_ipv6 = ":" in host
    try:  # from here on, clients wait instead of being refused
        listener = socket.create_server(
            (host, port),
            family=socket.AF_INET6 if is_ipv6 else socket.AF_INET,
            backlog=BACKLOG_CONNECTIONS,
            dualstack_ipv6=is_ipv6 and socket.has_dualstack_ipv6(),
        )
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen at {host}:{port}: {error}; expected an address of this machine and a "
            "port that is free. Choose another port: --port 8001, or 0 for any that is free."
        ) from None
    config = uvicorn.Config(
        app,
        log_level=log_level,
        access_log=log_level in ("info", "debug"),
        server_header=False,
        timeout_graceful_shutdown=GRACEFUL_STOP_SECONDS,
        backlog=BACKLOG_CONNECTIONS,
    )
    with listener:
        ready(f"http://{f'[{host}]' if is_ipv6 else host}:{listener.getsockname()[1]}")
        # What exists now is not searched for garbage again, which is slow with a model.
        gc.collect()
        gc.freeze()
        try:
            uvicorn.Server(config).run(sockets=[listener])
        finally:
            gc.unfreeze()
