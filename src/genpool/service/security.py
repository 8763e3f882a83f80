"""The key of a service, and the headers that keep its page to itself."""

from __future__ import annotations

from hmac import compare_digest

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from genpool.service.problems import ServiceError

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


class SecurityHeaders:
    """ASGI middleware that adds the headers to every answer.

    Args:
        app: the application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *RAW_HEADERS]
            await send(message)

        await self.app(scope, receive, with_headers)


class KeyCheck:
    """ASGI middleware that refuses requests without the key.

    Args:
        app: the application.
        api_key: the key.
    """

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
