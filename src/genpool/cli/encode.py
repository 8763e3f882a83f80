"""genpool encode"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from genpool.errors import InputError


def encode(
    paths: Annotated[
        list[str], typer.Argument(help="[MODEL] FILE; FILE may be - for standard input.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help=".npy, .parquet or .jsonl")],
    column: Annotated[
        str | None, typer.Option(help="Column of a table; else FILE has one sentence a line.")
    ] = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Vectors of length 1.")] = False,
    batch_size: Annotated[int, typer.Option(min=1)] = 64,
) -> None:
    """Write the vector of every sentence of a file, in order; streams, whatever the size.

    Example: genpool encode runs/rules/best sentences.txt -o vectors.npy
    """
    from genpool.encoding import encode_file
    from genpool.tables import load_encoder

    if not 1 <= len(paths) <= 2:
        raise InputError(f"got {len(paths)} paths; expected [MODEL] FILE.")
    encoder = load_encoder(paths[0] if len(paths) == 2 else None)
    count = encode_file(encoder, paths[-1], output, column, normalize, batch_size)
    typer.echo(f"{count:,} vectors of {encoder.output_dim:,} numbers: {output}")
    if encoder.text.cut.sentences:
        typer.echo(f"maximum length {encoder.text.max_length}: {encoder.text.cut}", err=True)
