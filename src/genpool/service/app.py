"""The application: endpoints, page, limits and errors; and `serve`, which runs it."""

from __future__ import annotations

import gc
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Response
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles

from genpool import __version__
from genpool.errors import InputError
from genpool.service import schemas
from genpool.service.core import Service
from genpool.service.endpoints import router_of
from genpool.service.middleware import BodyLimits, KeyCheck, MeasuredRequests, SecurityHeaders
from genpool.service.problems import add_handlers, json_response
from genpool.service.served_model import ServedModel
from genpool.service.settings import ServiceSettings

PAGE = Path(__file__).parent / "page"
#: how long a stopping service waits for the answers to what it has accepted
GRACEFUL_STOP_SECONDS = 30
#: connections that wait to be accepted; a burst of clients must not be refused by the system
BACKLOG_CONNECTIONS = 2048


def create_app(model: ServedModel, settings: ServiceSettings | None = None) -> FastAPI:
    """Returns the service as an ASGI application, for one process.

    Args:
        model: what is served.
        settings: limits, batches and the key. Default: None, the defaults of `ServiceSettings`.

    Returns:
        The application, for uvicorn or another ASGI server.

    Example:
        >>> app = create_app(ServedModel.load("runs/rules/best"), ServiceSettings(api_key="secret"))
    """
    settings = settings or ServiceSettings()
    service = Service(model, settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    # No pages of Swagger or ReDoc: they load scripts from other hosts.
    app = FastAPI(
        title="genpool",
        version=__version__,
        description="Sentence vectors, similarities, labels and explanations.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.include_router(router_of(service))

    @app.get("/healthz", response_model=schemas.HealthResponse, summary="Whether it is ready")
    async def healthz() -> Response:
        """Returns at once, whatever else the service does."""
        return json_response({"status": "ok"})

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(PAGE / "index.html")

    app.mount("/static", StaticFiles(directory=PAGE), name="static")
    add_handlers(app)
    app.add_middleware(BodyLimits, settings=settings)
    if settings.api_key is not None:
        app.add_middleware(KeyCheck, api_key=settings.api_key)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(MeasuredRequests, metrics=service.metrics)
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
    with _listening(host, port) as listener:
        name = f"[{host}]" if ":" in host else host
        ready(f"http://{name}:{listener.getsockname()[1]}")
        config = uvicorn.Config(
            app,
            log_level=log_level,
            access_log=log_level in ("info", "debug"),
            server_header=False,
            timeout_graceful_shutdown=GRACEFUL_STOP_SECONDS,
            backlog=BACKLOG_CONNECTIONS,
        )
        with _models_left_to_stay():
            uvicorn.Server(config).run(sockets=[listener])


@contextmanager
def _models_left_to_stay() -> Iterator[None]:
    """What exists now is not searched for garbage again, which is slow with a model."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _listening(host: str, port: int) -> socket.socket:
    """Returns a socket that listens; a problem is the user's to fix, not a traceback."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InputError(
            f"cannot listen at {host}: {error}; expected an address of this machine."
        ) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG_CONNECTIONS)  # from here on, clients wait instead of being refused
    except (OSError, OverflowError) as error:
        listener.close()
        raise InputError(
            f"cannot listen at {host}:{port}: {error}. Choose another port: --port 8001, or 0 for "
            "any that is free."
        ) from None
    return listener
