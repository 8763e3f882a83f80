"""genpool export"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    model: Annotated[Path, typer.Argument(help="Folder of a model.")],
    output: Annotated[Path, typer.Argument(help="New or empty folder, or an earlier export.")],
    int8: Annotated[
        bool, typer.Option("--int8", help="8-bit weights: smaller, and a little less exact.")
    ] = False,
) -> None:
    """Write a model as an ONNX graph, compared with PyTorch before it is kept.

    Example: genpool export runs/rules/best onnx-model
    """
    from genpool import SentenceEncoder
    from genpool.integrations.onnx import export as export_model

    encoder = SentenceEncoder.from_pretrained(model)
    done = export_model(encoder, output, int8)
    checked = (
        f"smallest cosine to PyTorch {1 - done.difference:.5f}"
        if int8
        else f"largest difference from PyTorch {done.difference:.1e}"
    )
    typer.echo(f"vectors of {encoder.output_dim:,} numbers, {checked}: {output}")
