"""The shards of a run: which rows of which file, the same in every run over the same files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from genpool.data.row_slices import RowFile, RowScan, Start
from genpool.errors import DataError, InputError, require_extra
from genpool.jobs.bulk.inputs import InputFile
from genpool.jobs.bulk.options import BulkOptions

#: the Arrow type of columns that do not come from Parquet
TEXT_TYPE = "string"


@dataclass(frozen=True)
class Shard:
    """A slice of one input file, and the file it becomes.

    Attributes:
        name: the name of the Parquet file.
        path: the input file.
        source: its name in ids.
        start: where the slice begins.
        rows: the rows of the slice, bad ones too.
        head_lines: lines of the input file before its first row.
    """

    name: str
    path: Path
    source: str
    start: Start
    rows: int
    head_lines: int


@dataclass(frozen=True)
class PlannedFile:
    """An input file as the manifest has it: how it is recognised, and where its slices begin.

    Attributes:
        name: its name in ids.
        bytes: its size.
        digest: a checksum of its start and its end.
        rows: its rows, bad ones too.
        head_lines: lines before the first row.
        starts: where its slices begin.
        types: the Arrow types of the copied columns.
    """

    name: str
    bytes: int
    digest: str
    rows: int
    head_lines: int
    starts: list[Start]
    types: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> PlannedFile:
        """Returns what `dataclasses.asdict` was written from."""
        return cls(**{**record, "starts": [Start(*start) for start in record["starts"]]})

    def shards(self, number: int, path: Path, shard_rows: int) -> list[Shard]:
        """Returns the shards of this file, the `number`-th of the run."""
        return [
            Shard(
                f"part-{number:05d}-{at:05d}.parquet",
                path,
                self.name,
                start,
                min(shard_rows, self.rows - start.row),
                self.head_lines,
            )
            for at, start in enumerate(self.starts)
        ]


def plan_file(file: InputFile, size: int, digest: str, options: BulkOptions) -> PlannedFile:
    """Finds where the slices of a file begin, in one pass; of Parquet, the footer tells it.

    Raises:
        InputError: the file is a table and no column was chosen.
        DataError: the file cannot be read, or lacks a column.
    """
    rows = open_rows(file.path, options)
    if rows.kind is not None and options.column is None:
        raise InputError(f"{file.path} is a table; say which column holds the sentences: --column.")
    try:
        scan: RowScan = rows.scan(options.shard_rows)
        types = _column_types(rows, options)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file.path) from error
    return PlannedFile(file.name, size, digest, scan.rows, scan.head_lines, scan.starts, types)


def open_rows(path: Path, options: BulkOptions) -> RowFile:
    """Returns the rows of an input file."""
    is_table = RowFile(path, ()).kind is not None
    return RowFile(path, options.read_columns(is_table), options.encoding)


def _column_types(rows: RowFile, options: BulkOptions) -> dict[str, str]:
    if rows.kind != ".parquet" or not options.columns:
        return dict.fromkeys(options.columns, TEXT_TYPE)
    schema = parquet_schema(rows.path)
    return {name: str(schema.field(name).type) for name in options.columns}


def parquet_schema(path: Path) -> Any:
    """Returns the Arrow schema of a Parquet file."""
    with require_extra("reading Parquet", "parquet"):
        from pyarrow import parquet

    from genpool.data.text_files import open_seekable

    with open_seekable(path) as stream:
        return parquet.read_schema(stream)
