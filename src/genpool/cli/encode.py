"""genpool encode"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from genpool.cli.arguments import split_model_argument, split_names
from genpool.cli.encode_bulk import (
    AddressOption,
    BadFilesOption,
    EngineOption,
    ShardOptions,
    ShardRowsOption,
    VectorsOption,
    run_bulk,
)
from genpool.cli.sentences import is_sentence
from genpool.cli.stopping import stopping_in_words
from genpool.cli.table_options import BadRows, BadRowsOption, EncodingOption, report_skipped
from genpool.disk.files import is_file
from genpool.errors import InputError, counted, unknown_name

if TYPE_CHECKING:
    from genpool.inference.sentence_vectors import SentenceVectors
    from genpool.jobs.encode_file import EncodeOptions, OpenOutput

#: a file that takes minutes: whoever stops it should know what is lost
LARGE_FILE_BYTES = 10 << 20


def encode(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL] FILE...",
            help="FILE may be - for standard input. MODEL: a saved folder. With --engine: several "
            "files, folders and globs.",
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            help="A .npy, .parquet or .jsonl file, FOLDER/ (an index), TABLE.lance (LanceDB), or "
            "with --engine a folder of Parquet shards.",
        ),
    ],
    column: Annotated[
        str | None,
        typer.Option(help="Column of a table. Default: FILE has one sentence per line."),
    ] = None,
    id_: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Column of ids, which the output keeps. Default of shards: FILE:ROW.",
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="Other columns that the output keeps (not a .npy file). Repeatable.",
        ),
    ] = None,
    append: Annotated[
        bool, typer.Option("--append", help="Add to the index or table instead of replacing it.")
    ] = False,
    encoding: EncodingOption = None,
    bad_rows: BadRowsOption = BadRows.ERROR,
    normalize: Annotated[
        bool, typer.Option("--normalize", help="Scale every vector to length 1.")
    ] = False,
    truncate_dim: Annotated[
        int | None, typer.Option(min=1, help="Keep only this number of leading dimensions.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Sentences per batch.")] = 128,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Processes that encode at the same time. [1; ray: one per CPU but one]"
        ),
    ] = None,
    int8: Annotated[
        bool, typer.Option("--int8", help="8-bit weights: faster, a little less exact.")
    ] = False,
    runtime: Annotated[
        str,
        typer.Option(metavar="torch|onnx", help="onnx is for a MODEL that `genpool export` wrote."),
    ] = "torch",
    engine: EngineOption = None,
    address: AddressOption = None,
    vectors: VectorsOption = None,
    shard_rows: ShardRowsOption = None,
    bad_files: BadFilesOption = None,
) -> None:
    """Write the vector of every sentence of a file, in order and in bounded memory.

    The output appears when it is complete, in the place of an earlier one. A run that is stopped
    (Ctrl-C) writes nothing and starts over. An index of a million rows or more gets lists for an
    approximate search, if FAISS is installed (extra faiss); see genpool index.

    With --engine, many files become a folder of Parquet shards (id, vector and --columns): a run
    that is stopped or killed is continued by the same command.

    Example: genpool encode sentences.txt -o vectors.npy
    """
    kept = ",".join(columns) if columns else None
    shard_options = ShardOptions(address, id_, kept, vectors, shard_rows, bad_files)
    if engine is not None or shard_options.own():
        if append:
            raise InputError("--append is for an index; the same command continues shards.")
        with stopping_in_words("stopped before any row was encoded; run the command again"):
            run_bulk(
                paths,
                output,
                engine,
                workers,
                shard_options,
                runtime,
                column=column,
                encoding=encoding,
                bad_rows=str(bad_rows),
                normalize=normalize,
                truncate_dim=truncate_dim,
                batch_size=batch_size,
                int8=int8,
            )
        return
    from genpool.data.sentences import column_reader

    model, file = split_model_argument("FILE", paths)
    if not is_file(file) and is_sentence(file):
        raise InputError(
            f"there is no file {file!r}. Sentences can be given on standard input, one per line: "
            f"genpool encode - -o {output}"
        )
    for name, value in (("encoding", encoding), ("id", id_), ("columns", kept)):
        if value is not None and column is None:
            raise InputError(f"--{name} is for a table; name its column with --column.")
    keep = list(dict.fromkeys(([] if id_ is None else [id_]) + split_names(kept)))
    reader = None if column is None else column_reader(file, column, bad_rows, encoding, keep)
    if is_file(file) and Path(file).stat().st_size >= LARGE_FILE_BYTES:
        typer.echo(
            "a run that is stopped starts over; with --engine local it could be continued", err=True
        )
    with stopping_in_words(f"stopped; nothing was written to {output}; run the command again"):
        from genpool.jobs.encode_file import EncodeOptions, describe_earlier_output, encode_file

        encoder = _load(model, runtime)
        earlier = describe_earlier_output(output)
        if earlier is not None:
            fate = "extended" if append else "replaced"
            typer.echo(
                f"{output} exists ({earlier}); it is {fate} when this run is complete", err=True
            )
        options = EncodeOptions(
            batch_size=batch_size,
            normalize=normalize,
            truncate_dim=truncate_dim,
            workers=workers or 1,
            int8=int8,
            id=id_,
            append=append,
            model_path=model,
        )
        source = file if reader is None else reader
        count = encode_file(encoder, source, output, options, _other_output(output, options))
    if reader is not None:
        report_skipped(reader)
    dim = truncate_dim or encoder.output_dim
    typer.echo(f"{counted(count, 'vector')} of {counted(dim, 'dimension')}: {output}")
    if encoder.text.cut:
        typer.echo(f"maximum length {encoder.text.max_length}: {encoder.text.cut}", err=True)
    annotator = encoder.text.annotator
    if annotator is not None:
        typer.echo(f"{annotator.name}: {annotator.report()}", err=True)


def _other_output(output: str, options: EncodeOptions) -> OpenOutput | None:
    """Returns what opens an output that needs an extra: a table of LanceDB."""
    if not output.rstrip("/").endswith(".lance"):
        return None
    from genpool.integrations.lance_table import table_writer

    return partial(table_writer, output, model=options.model_path, append=options.append)


def _load(model: str | None, runtime: str) -> SentenceVectors:
    from genpool.integrations.load_encoder import load_encoder

    if runtime == "torch":
        return load_encoder(model)
    if runtime != "onnx":
        raise InputError(unknown_name("runtime", runtime, ("torch", "onnx")))
    if model is None:
        raise InputError("--runtime onnx needs MODEL, a folder that `genpool export` wrote.")
    from genpool.integrations.onnx import OnnxEncoder

    return OnnxEncoder.from_pretrained(model)
