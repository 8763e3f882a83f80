"""Running a service until it is stopped."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from genpool.errors import InputError

#: how long a stopping service waits for the answers to what it has accepted
GRACEFUL_STOP_SECONDS = 30
#: connections that wait to be accepted; a burst of clients must not be refused by the system
BACKLOG_CONNECTIONS = 2048


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
