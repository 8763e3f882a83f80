"""genpool serve"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

#: addresses that only this machine can reach
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(
    model: Annotated[
        Path | None,
        typer.Argument(help="Folder of an encoder or a classifier. Default: the embedded models."),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free one.")] = 8000,
    classifier: Annotated[
        Path | None, typer.Option(help="Folder of a classifier, if MODEL has none.")
    ] = None,
    index: Annotated[
        Path | None, typer.Option(help="Folder made by encode -o INDEX/, to search in.")
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(envvar="GENPOOL_API_KEY", help="Key that clients must send. Default: none."),
    ] = None,
    log_level: Annotated[
        str, typer.Option(help="warning, or info for a line per request.")
    ] = "warning",
) -> None:
    """Answer over HTTP: vectors, similarities, labels, explanations, and a page that shows them.

    Open http://127.0.0.1:8000 in a browser; /v1/embeddings works with OpenAI's clients, and
    /openapi.json describes the rest. Ctrl-C stops it.

    Example: genpool serve runs/rules/best --port 8000
    """
    from genpool.service import ServedModel, ServiceSettings, create_app
    from genpool.service import serve as run

    if api_key is None and host not in LOOPBACK:
        note = f"warning: everybody who can reach {host} can use this service; see --api-key."
        typer.echo(note, err=True)
    settings = ServiceSettings(api_key=api_key)
    app = create_app(ServedModel.load(model, classifier, index), settings)

    def ready(address: str) -> None:
        typer.echo(f"serving at {address} (Ctrl-C stops)")

    run(app, host, port, ready, log_level)
