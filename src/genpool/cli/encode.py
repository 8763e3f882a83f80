"""genpool encode"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from genpool.cli.arguments import split_model_argument
from genpool.cli.table_options import BadRows, BadRowsOption, report_skipped
from genpool.errors import InputError, Stopped, unknown_name

if TYPE_CHECKING:
    from genpool.inference.sentence_vectors import SentenceVectors


def encode(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL] FILE", help="FILE may be - for standard input. MODEL: a saved folder."
        ),
    ],
    output: Annotated[
        str,
        typer.Option("-o", "--output", help="A .npy, .parquet or .jsonl file, or FOLDER/ (index)."),
    ],
    column: Annotated[
        str | None,
        typer.Option(help="Column of a table. Default: FILE has one sentence per line."),
    ] = None,
    bad_rows: BadRowsOption = BadRows.ERROR,
    normalize: Annotated[
        bool, typer.Option("--normalize", help="Scale every vector to length 1.")
    ] = False,
    truncate_dim: Annotated[
        int | None, typer.Option(min=1, help="Keep only this number of leading dimensions.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Sentences per batch.")] = 128,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes that encode at the same time.")
    ] = 1,
    int8: Annotated[
        bool, typer.Option("--int8", help="8-bit weights: faster, a little less exact.")
    ] = False,
    runtime: Annotated[
        str, typer.Option(help="torch, or onnx for a MODEL that `genpool export` wrote.")
    ] = "torch",
) -> None:
    """Write the vector of every sentence of a file, in order and in bounded memory.

    The output appears when it is complete, in the place of an earlier one. A run that is stopped
    (Ctrl-C) writes nothing and cannot be continued.

    Example: genpool encode sentences.txt -o vectors.npy
    """
    from genpool.data.sentences import column_reader

    model, file = split_model_argument("FILE", paths)
    reader = None if column is None else column_reader(file, column, bad_rows)
    with _stopping_in_words(output):
        from genpool.jobs.earlier_output import describe_earlier_output
        from genpool.jobs.encode_file import EncodeOptions, encode_file

        encoder = _load(model, runtime)
        earlier = describe_earlier_output(output)
        if earlier is not None:
            typer.echo(
                f"{output} exists ({earlier}); it is replaced when this run is complete", err=True
            )
        options = EncodeOptions(
            batch_size=batch_size,
            normalize=normalize,
            truncate_dim=truncate_dim,
            workers=workers,
            int8=int8,
            model_path=model,
        )
        count = encode_file(encoder, file if reader is None else reader, output, options)
    if reader is not None:
        report_skipped(reader)
    typer.echo(f"{count:,} vectors of {truncate_dim or encoder.output_dim:,} dimensions: {output}")
    if encoder.text.cut.sentences:
        typer.echo(f"maximum length {encoder.text.max_length}: {encoder.text.cut}", err=True)


@contextmanager
def _stopping_in_words(output: str) -> Iterator[None]:
    """Turns Ctrl-C and SIGTERM into an error that says what is kept."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    # Only the main thread may set a handler.
    in_main_thread = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, interrupt) if in_main_thread else None
    try:
        yield
    except KeyboardInterrupt as stop:
        nothing = f"stopped; nothing was written to {output}; run the command again"
        raise Stopped(str(stop) or nothing) from None
    finally:
        if in_main_thread:
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


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
