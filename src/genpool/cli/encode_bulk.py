"""The part of genpool encode that writes shards: its options, and how it is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from genpool.cli.arguments import split_names
from genpool.errors import InputError

if TYPE_CHECKING:
    from genpool.jobs.bulk.engines import Engine


class EngineName(StrEnum):
    """What encodes shards."""

    LOCAL = "local"
    RAY = "ray"


class VectorType(StrEnum):
    """The type of the vectors in shards."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"


class BadFiles(StrEnum):
    """What happens to an input file that cannot be read."""

    ERROR = "error"
    SKIP = "skip"


EngineOption = Annotated[
    EngineName | None,
    typer.Option(
        "--engine",
        help="Write Parquet shards, continued after a stop: with worker processes of this machine, "
        "or on Ray.",
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option("--address", metavar="HOST:PORT", help="Ray cluster. Default: a Ray of its own."),
]
VectorsOption = Annotated[
    VectorType | None,
    typer.Option(
        "--vectors", help="Type of the vectors; int8 adds a column scale. Shards only. [float32]"
    ),
]
ShardRowsOption = Annotated[
    int | None, typer.Option("--shard-rows", min=1, help="Rows per shard. [50000]")
]
BadFilesOption = Annotated[
    BadFiles | None,
    typer.Option(
        "--bad-files", help="Stop at an unreadable file, or count and name it. Shards only. [error]"
    ),
]


@dataclass(frozen=True)
class ShardOptions:
    """The options of shards; None where they were not given.

    All but `id` and `columns` are of shards alone.
    """

    address: str | None = None
    id: str | None = None
    columns: str | None = None
    vectors: VectorType | None = None
    shard_rows: int | None = None
    bad_files: BadFiles | None = None

    def own(self) -> list[str]:
        """Returns the names of those that were given and that are of shards alone."""
        names = ("address", "vectors", "shard_rows", "bad_files")
        return [name for name in names if getattr(self, name) is not None]

    def require_engine(self, engine: EngineName | None) -> EngineName:
        """Returns the engine; raises InputError if an option was given that it does not have."""
        if engine is None:
            options = ", ".join("--" + name.replace("_", "-") for name in self.own())
            raise InputError(f"{options}: only for shards; add --engine local or --engine ray.")
        if self.address is not None and engine is not EngineName.RAY:
            raise InputError("--address is of a Ray cluster; add --engine ray.")
        return engine

    def given(self) -> dict[str, Any]:
        """Returns those that were given, as `BulkOptions` has them."""
        values = {name: value for name, value in vars(self).items() if value is not None}
        values.pop("address", None)
        if self.columns is not None:
            values["columns"] = tuple(split_names(self.columns))
        return {name: str(v) if isinstance(v, StrEnum) else v for name, v in values.items()}


def split_inputs(paths: Sequence[str]) -> tuple[str | None, list[str]]:
    """Returns the folder of the model, None for the embedded one, and the inputs after it."""
    if len(paths) > 1 and (Path(paths[0]) / "config.json").is_file():
        return paths[0], list(paths[1:])
    return None, list(paths)


def run_bulk(
    paths: Sequence[str],
    output: str,
    engine: EngineName | None,
    workers: int | None,
    shard_options: ShardOptions,
    runtime: str,
    **options: Any,
) -> None:
    """Encodes the inputs into shards and prints the summary."""
    engine = shard_options.require_engine(engine)
    if runtime != "torch":
        raise InputError("--engine encodes with PyTorch; leave --runtime out.")
    from genpool.jobs.bulk import BulkOptions, encode_bulk
    from genpool.sentence_encoder import SentenceEncoder

    model, inputs = split_inputs(paths)
    if "-" in inputs:
        raise InputError("standard input can be read only once, so it has no shards; name files.")
    chosen = BulkOptions(**options, **shard_options.given())
    runner = _engine(engine, workers, shard_options.address)
    encoder = SentenceEncoder.from_pretrained(model)
    summary = encode_bulk(encoder, inputs, output, chosen, runner)
    typer.echo(f"{output}: vectors of {chosen.truncate_dim or encoder.output_dim:,} dimensions")
    for line in summary.lines():
        typer.echo(line)


def _engine(name: EngineName, workers: int | None, address: str | None) -> Engine:
    if name is EngineName.RAY:
        from genpool.integrations.ray import RayEngine

        return RayEngine(workers, address)
    from genpool.jobs.bulk.engines import LocalEngine

    return LocalEngine(workers or 1)
