"""genpool encode"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer import Argument, Option

from genpool.cli import options
from genpool.cli.terminal import stop_with_message
from genpool.disk.files import is_file
from genpool.errors import InputError, counted, unknown_name

if TYPE_CHECKING:
    from genpool.data import TableReader
    from genpool.inference.sentence_vectors import SentenceVectors

#: a file that takes minutes: whoever stops it should know what is lost
LARGE_FILE_BYTES = 10 << 20


def encode(
    paths: list[str] = Argument(
        metavar="[MODEL] FILE...",
        help="FILE may be - for standard input. MODEL: a saved folder. With --engine: several "
        "files, folders and globs.",
    ),
    output: str = Option(
        ...,
        "-o",
        "--output",
        help="A .npy, .parquet or .jsonl file, FOLDER/ (an index), TABLE.lance (LanceDB), or "
        "with --engine a folder of Parquet shards.",
    ),
    column: str | None = Option(
        None, help="Column of a table. Default: FILE has one sentence per line."
    ),
    id_: str | None = Option(
        None,
        "--id",
        metavar="COLUMN",
        help="Column of ids, which the output keeps. Default of shards: FILE:ROW.",
    ),
    columns: list[str] | None = Option(
        None,
        metavar="A,B",
        help="Other columns that the output keeps (not a .npy file). Repeatable.",
    ),
    append: bool = Option(
        False, "--append", help="Add to the index or table instead of replacing it."
    ),
    encoding: options.Encoding = None,
    bad_rows: options.BadRows = "error",
    normalize: bool = Option(False, "--normalize", help="Scale every vector to length 1."),
    truncate_dim: int | None = Option(
        None, min=1, help="Keep only this number of leading dimensions."
    ),
    batch_size: int = Option(128, min=1, help="Sentences per batch."),
    workers: int | None = Option(
        None, min=1, help="Processes that encode at the same time. [1; ray: one per CPU but one]"
    ),
    int8: bool = Option(False, "--int8", help="8-bit weights: faster, a little less exact."),
    runtime: str = Option(
        "torch", metavar="torch|onnx", help="onnx is for a MODEL that `genpool export` wrote."
    ),
    engine: str | None = Option(
        None,
        metavar="local|ray",
        help="Write Parquet shards, continued after a stop: with worker processes of this "
        "machine, or on Ray.",
    ),
    address: str | None = Option(
        None, metavar="HOST:PORT", help="Ray cluster. Default: a Ray of its own."
    ),
    vectors: str | None = Option(
        None,
        metavar="float32|float16|int8",
        help="Type of the vectors; int8 adds a column scale. Shards only. [float32]",
    ),
    shard_rows: int | None = Option(None, min=1, help="Rows per shard. [50000]"),
    bad_files: str | None = Option(
        None,
        metavar="error|skip",
        help="Stop at an unreadable file, or count and name it. Shards only. [error]",
    ),
    plugin: options.Plugin = None,
) -> None:
    """Write the vector of every sentence of a file, in order and in bounded memory.

    The output appears when it is complete, in the place of an earlier one. A run that is stopped
    (Ctrl-C) writes nothing and starts over. An index of a million rows or more gets lists for an
    approximate search, if FAISS is installed (extra faiss); see genpool index.

    With --engine, many files become a folder of Parquet shards (id, vector and --columns): a run
    that is stopped or killed is continued by the same command.

    Example: genpool encode sentences.txt -o vectors.npy
    """
    given = ",".join(columns or ())
    keep = [name.strip() for name in given.split(",")] if columns else []
    if not all(keep):
        raise InputError(f"got {given!r}; expected names with commas between them, such as a,b.")
    common: dict[str, Any] = {"batch_size": batch_size, "normalize": normalize, "id": id_}
    common |= {"truncate_dim": truncate_dim, "int8": int8}
    of_shards = {"vectors": vectors, "shard_rows": shard_rows, "bad_files": bad_files}
    chosen = {name: value for name, value in of_shards.items() if value is not None}
    if engine is None and (chosen or address):
        shown = ["--" + name.replace("_", "-") for name in chosen]
        shown = ["--address", *shown] if address else shown
        names = ", ".join(shown)
        raise InputError(f"{names}: only for shards; add --engine local or --engine ray.")
    if engine is not None:
        if append:
            raise InputError("--append is for an index; the same command continues shards.")
        if runtime != "torch":
            raise InputError("--engine encodes with PyTorch; leave --runtime out.")
        table = {"column": column, "encoding": encoding, "bad_rows": bad_rows}
        bulk = {**common, **table, **chosen, "columns": tuple(keep)}
        with stop_with_message("stopped before any row was encoded; run the command again"):
            _encode_shards(paths, output, engine, workers, address, bulk)
        return
    from genpool.data.sentences import column_reader

    model, file = options.split_model_argument("FILE", paths)
    if not is_file(file) and options.is_sentence(file):
        raise InputError(
            f"there is no file {file!r}. Sentences can be given on standard input, one per line: "
            f"genpool encode - -o {output}"
        )
    for name, value in (("encoding", encoding), ("id", id_), ("columns", columns)):
        if value is not None and column is None:
            raise InputError(f"--{name} is for a table; name its column with --column.")
    source: str | TableReader = file
    if column is not None:
        keep = list(dict.fromkeys([id_, *keep] if id_ else keep))
        source = column_reader(file, column, bad_rows=bad_rows, encoding=encoding, keep=keep)
    if is_file(file) and Path(file).stat().st_size >= LARGE_FILE_BYTES:
        note = "a run that is stopped starts over; with --engine local it could be continued"
        typer.echo(note, err=True)
    with stop_with_message(f"stopped; nothing was written to {output}; run the command again"):
        from genpool.jobs.encode_file import EncodeOptions, encode_file

        encoder = _load(model, runtime)
        if is_file(output) or is_file(f"{output}/index.json"):
            fate = f"it is {'extended' if append else 'replaced'} when this run is complete"
            typer.echo(f"{output} exists; {fate}", err=True)
        open_output = None
        if output.rstrip("/").endswith(".lance"):
            from genpool.integrations.lancedb import table_writer

            open_output = partial(table_writer, output, model=model, append=append)
        how = EncodeOptions(**common, workers=workers or 1, append=append, model_path=model)
        count = encode_file(encoder, source, output, how, open_output)
    if not isinstance(source, str):
        options.report_skipped(source)
    dim = truncate_dim or encoder.output_dim
    typer.echo(f"{counted(count, 'vector')} of {counted(dim, 'dimension')}: {output}")
    options.report_cut(encoder.text)


def _encode_shards(
    paths: Sequence[str],
    output: str,
    engine: str,
    workers: int | None,
    address: str | None,
    bulk: dict[str, Any],
) -> None:
    """Encodes the inputs into shards and prints the summary."""
    if engine not in ("local", "ray"):
        raise InputError(unknown_name("engine", engine, ("local", "ray")))
    if address is not None and engine != "ray":
        raise InputError("--address is of a Ray cluster; add --engine ray.")
    from genpool.integrations.bulk import BulkOptions, encode_bulk
    from genpool.integrations.bulk.engines import Engine, encode_locally
    from genpool.model import SentenceEncoder

    has_model = len(paths) > 1 and (Path(paths[0]) / "config.json").is_file()
    model, inputs = (paths[0], paths[1:]) if has_model else (None, paths)
    if "-" in inputs:
        raise InputError("standard input can be read only once, so it has no shards; name files.")
    how = BulkOptions(**bulk)
    runner: Engine = partial(encode_locally, workers=workers or 1)
    if engine == "ray":
        from genpool.integrations.ray import encode_on_ray

        runner = partial(encode_on_ray, workers=workers, address=address)
    encoder = SentenceEncoder.from_pretrained(model)
    summary = encode_bulk(encoder, inputs, output, how, runner)
    typer.echo(f"{output}: vectors of {how.truncate_dim or encoder.output_dim:,} dimensions")
    typer.echo("\n".join(summary.lines()))


def _load(model: str | None, runtime: str) -> SentenceVectors:
    if runtime == "torch":
        from genpool.integrations.load_encoder import load_encoder

        return load_encoder(model)
    if runtime != "onnx":
        raise InputError(unknown_name("runtime", runtime, ("torch", "onnx")))
    if model is None:
        raise InputError("--runtime onnx needs MODEL, a folder that `genpool export` wrote.")
    from genpool.integrations.onnx import OnnxEncoder

    return OnnxEncoder.from_pretrained(model)
