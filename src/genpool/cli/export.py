"""genpool export"""

from __future__ import annotations

from typing import Annotated

import typer

from genpool.cli.arguments import split_model_argument


def export(
    paths: Annotated[
        list[str], typer.Argument(help="[MODEL] OUT; OUT is a new folder, or an earlier export.")
    ],
    int8: Annotated[
        bool, typer.Option("--int8", help="8-bit weights: smaller, and a little less exact.")
    ] = False,
) -> None:
    """Write a sentence encoder as an ONNX graph, compared with PyTorch before it is kept.

    Without MODEL it is the encoder inside; of a classifier, the encoder is written.

    Example: genpool export runs/rules/best onnx-model
    """
    from genpool import SentenceEncoder
    from genpool.integrations.onnx import export as export_model

    model, output = split_model_argument("OUT", paths)
    encoder = SentenceEncoder.from_pretrained(model)
    done = export_model(encoder, output, int8)
    checked = (
        f"smallest cosine to PyTorch {1 - done.difference:.5f}"
        if int8
        else f"largest difference from PyTorch {done.difference:.1e}"
    )
    typer.echo(f"vectors of {encoder.output_dim:,} numbers, {checked}: {output}")
