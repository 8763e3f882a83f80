"""genpool export"""

from __future__ import annotations

from typing import Annotated

import typer

from genpool.errors import InputError


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

    if not 1 <= len(paths) <= 2:
        raise InputError(f"got {len(paths)} paths; expected [MODEL] OUT.")
    encoder = SentenceEncoder.from_pretrained(paths[0] if len(paths) == 2 else None)
    done = export_model(encoder, paths[-1], int8)
    checked = (
        f"smallest cosine to PyTorch {1 - done.difference:.5f}"
        if int8
        else f"largest difference from PyTorch {done.difference:.1e}"
    )
    typer.echo(f"vectors of {encoder.output_dim:,} numbers, {checked}: {paths[-1]}")
