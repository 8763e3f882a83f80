"""genpool export"""

from __future__ import annotations

from typing import Annotated

import typer

from genpool.cli.arguments import split_model_argument


def export(
    paths: Annotated[
        list[str],
        typer.Argument(
            help="[MODEL] OUT. OUT is the folder to write; an earlier export is replaced."
        ),
    ],
    int8: Annotated[
        bool, typer.Option("--int8", help="8-bit weights: smaller, slightly less exact.")
    ] = False,
) -> None:
    """Export a sentence encoder as an ONNX graph, after comparing it with PyTorch.

    Without MODEL, the embedded encoder is exported; of a classifier, its encoder. MODEL may also be
    a folder of sentence-transformers with genpool's pooling.

    Example: genpool export runs/rules/best onnx-model
    """
    from genpool.integrations.load_encoder import load_encoder
    from genpool.integrations.onnx import export as export_model

    model, output = split_model_argument("OUT", paths)
    encoder = load_encoder(model)
    done = export_model(encoder, output, int8)
    checked = (
        f"smallest cosine to PyTorch {1 - done.difference:.5f}"
        if int8
        else f"largest difference from PyTorch {done.difference:.1e}"
    )
    typer.echo(f"vectors of {encoder.output_dim:,} dimensions, {checked}: {output}")
