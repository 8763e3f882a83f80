"""Every answer that is no success has one shape, OpenAI's, and a sentence that says what to do."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException

logger = logging.getLogger("genpool.service")

#: what a client reads that sent too much at once
OVERLOADED = "The service is busy: too many requests are waiting. Try again in a second."


class ServiceError(Exception):
    """A request that is answered with an error.

    Args:
        status: the HTTP status.
        code: a short name that programs can compare.
        message: a sentence: what was sent, what is expected, how to fix it.
        param: the field of the request. Default: None.
    """

    def __init__(self, status: int, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.param = status, code, message, param

    def response(self) -> Response:
        """Returns the answer to the client."""
        headers = {}
        if self.status == 503:
            headers["Retry-After"] = "1"
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return json_response(self.body(), self.status, headers)

    def body(self) -> dict[str, Any]:
        """Returns the JSON of the answer."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        return {"error": error}


def json_response(
    content: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Returns JSON, written by compiled code; vectors are long lists of numbers."""
    return Response(to_json(content), status, headers, media_type="application/json")


def overloaded() -> ServiceError:
    """Returns the error of a service that has as much to do as it may have."""
    return ServiceError(503, "overloaded", OVERLOADED)


def add_handlers(app: FastAPI) -> None:
    """Makes every error of the application an answer of this shape; never a stack trace."""

    @app.exception_handler(ServiceError)
    async def known(request: Request, error: ServiceError) -> Response:
        return error.response()

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return _invalid(error.errors()).response()

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        return _http(error.status_code, request).response()

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:
        logger.error("unexpected error", exc_info=error)
        message = "The service failed to answer this request; its log says more."
        return ServiceError(500, "internal_error", message).response()


def _invalid(errors: Sequence[Mapping[str, Any]]) -> ServiceError:
    """Returns the error of a body that does not fit; the client's own input is never repeated."""
    first = errors[0]
    if first["type"] == "json_invalid":
        reason = str(first.get("ctx", {}).get("error", "it cannot be parsed"))
        message = f"The body is not JSON: {reason}. Expected an object, see /openapi.json."
        return ServiceError(400, "invalid_json", message)
    place = [str(part) for part in first["loc"] if part != "body"]
    param = place[0] if place else None
    reasons = list(dict.fromkeys(f"{error['msg']}" for error in errors))
    where = (
        f"{param}: " if param else "The body is no JSON object with Content-Type application/json: "
    )
    return ServiceError(422, "invalid_request", f"{where}{'; or '.join(reasons)}.", param)


def _http(status: int, request: Request) -> ServiceError:
    place = f"{request.method} {request.url.path}"
    if status == 404:
        return ServiceError(404, "not_found", f"There is no {place}; see /openapi.json.")
    if status == 405:
        message = f"{place} does not exist, but another method does; see /openapi.json."
        return ServiceError(405, "method_not_allowed", message)
    if status == 400:
        return ServiceError(400, "invalid_json", "The body is not JSON in UTF-8.")
    return ServiceError(status, "invalid_request", "The request cannot be answered.")
