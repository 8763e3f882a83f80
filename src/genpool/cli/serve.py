"""genpool serve and genpool export: a model for other programs."""

from __future__ import annotations

from pathlib import Path

import typer
from typer import Argument, Option

from genpool.cli import options

#: addresses that only this machine can reach
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(
    model: Path | None = Argument(
        None, help="Folder of an encoder or a classifier. Default: the embedded models."
    ),
    host: str = Option("127.0.0.1", help="Address to listen at."),
    port: int = Option(8000, min=0, max=65535, help="Port; 0 for any free one."),
    classifier: Path | None = Option(None, help="Folder of a classifier, if MODEL has none."),
    index: Path | None = Option(None, help="Folder made by encode -o INDEX/, to search in."),
    api_key: str | None = Option(
        None, envvar="GENPOOL_API_KEY", help="Key that clients must send. Default: none."
    ),
    log_level: str = Option("warning", help="warning, or info for a line per request."),
    plugin: options.Plugin = None,
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
    app = create_app(ServedModel.load(model, classifier, index), ServiceSettings(api_key=api_key))
    ready = "serving at {} (Ctrl-C stops)"
    run(app, host, port, lambda address: typer.echo(ready.format(address)), log_level)


def export(
    paths: list[str] = Argument(
        help="[MODEL] OUT. OUT is the folder to write; an earlier export is replaced."
    ),
    int8: bool = Option(False, "--int8", help="8-bit weights: smaller, slightly less exact."),
    plugin: options.Plugin = None,
) -> None:
    """Export a sentence encoder as an ONNX graph, after comparing it with PyTorch.

    Without MODEL, the embedded encoder is exported; of a classifier, its encoder. MODEL may also be
    a folder of sentence-transformers with genpool's pooling.

    Example: genpool export runs/rules/best onnx-model
    """
    from genpool.integrations.load_encoder import load_encoder
    from genpool.integrations.onnx import export as export_model

    model, output = options.split_model_argument("OUT", paths)
    encoder = load_encoder(model)
    done = export_model(encoder, output, int8)
    checked = (
        f"smallest cosine to PyTorch {1 - done.difference:.5f}"
        if int8
        else f"largest difference from PyTorch {done.difference:.1e}"
    )
    typer.echo(f"vectors of {encoder.output_dim:,} dimensions, {checked}: {output}")
