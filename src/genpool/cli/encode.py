"""genpool encode"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from genpool.cli.arguments import split_model_argument
from genpool.cli.table_options import BadRows, report_skipped
from genpool.errors import InputError, unknown_name

if TYPE_CHECKING:
    from genpool.inference.sentence_vectors import SentenceVectors


def encode(
    paths: Annotated[
        list[str], typer.Argument(help="[MODEL] FILE; FILE may be - for standard input.")
    ],
    output: Annotated[
        str, typer.Option("-o", "--output", help=".npy, .parquet, .jsonl, or a FOLDER/ to search.")
    ],
    column: Annotated[
        str | None, typer.Option(help="Column of a table; else FILE has one sentence a line.")
    ] = None,
    bad_rows: BadRows = "error",
    normalize: Annotated[bool, typer.Option("--normalize", help="Vectors of length 1.")] = False,
    truncate_dim: Annotated[
        int | None, typer.Option(min=1, help="Keep only so many numbers, the first ones.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1)] = 128,
    workers: Annotated[int, typer.Option(min=1, help="Processes that encode side by side.")] = 1,
    int8: Annotated[
        bool, typer.Option("--int8", help="8-bit weights: faster, a little less exact.")
    ] = False,
    runtime: Annotated[
        str, typer.Option(help="torch, or onnx for a MODEL that `genpool export` wrote.")
    ] = "torch",
) -> None:
    """Write the vector of every sentence of a file, in order; streams, whatever the size.

    Example: genpool encode sentences.txt -o vectors.npy
    """
    from genpool.data.sentences import column_reader
    from genpool.jobs.encode_file import encode_file

    model, file = split_model_argument("FILE", paths)
    reader = None if column is None else column_reader(file, column, bad_rows)
    encoder = _load(model, runtime)
    count = encode_file(
        encoder,
        reader or file,
        output,
        None,
        normalize,
        batch_size,
        model_path=model,
        workers=workers,
        int8=int8,
        truncate_dim=truncate_dim,
    )
    if reader is not None:
        report_skipped(reader)
    width = truncate_dim or encoder.output_dim
    typer.echo(f"{count:,} vectors of {width:,} numbers: {output}")
    if encoder.text.cut.sentences:
        typer.echo(f"maximum length {encoder.text.max_length}: {encoder.text.cut}", err=True)


def _load(model: str | None, runtime: str) -> SentenceVectors:
    from genpool import SentenceEncoder

    if runtime == "torch":
        return SentenceEncoder.from_pretrained(model)
    if runtime != "onnx":
        raise InputError(unknown_name("runtime", runtime, ("torch", "onnx")))
    if model is None:
        raise InputError("--runtime onnx needs MODEL, a folder that `genpool export` wrote.")
    from genpool.integrations.onnx import OnnxEncoder

    return OnnxEncoder.from_pretrained(model)
