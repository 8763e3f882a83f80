"""The application: endpoints, page, limits and errors, joined."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Response
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles

from genpool import __version__
from genpool.service import schemas
from genpool.service.core import Service
from genpool.service.endpoints import router_of
from genpool.service.metrics import MeasuredRequests
from genpool.service.problems import add_handlers, json_response
from genpool.service.request_body import BodyLimits
from genpool.service.security import KeyCheck, SecurityHeaders
from genpool.service.served_model import ServedModel
from genpool.service.settings import ServiceSettings

PAGE = Path(__file__).parent / "page"


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
