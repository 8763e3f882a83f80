"""How a bulk run encodes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from genpool.data.reader import BAD_ROWS, require_choice
from genpool.data.row_slices import LINE_COLUMN
from genpool.errors import InputError

#: what an unreadable input file means: the end of the run, or a file that is left out
BAD_FILES = ("error", "skip")
#: the types of the vector column
VECTOR_TYPES = ("float32", "float16", "int8")
ID, VECTOR, SCALE = "id", "vector", "scale"


@dataclass(frozen=True)
class BulkOptions:
    """How `encode_bulk` encodes.

    Attributes:
        column: the column of texts, in tables. Default: None; needed only for tables.
        id: the column of ids. Default: None, which makes them of the file's name and the row's
            number, from 1: "news/a.csv:17".
        columns: columns that are copied to the output. A file of lines has only "text". Default:
            none.
        vectors: the type of the vectors: "float32" (default), "float16", or "int8", which adds a
            column `scale` to multiply them by.
        shard_rows: rows per shard. Default: 50,000.
        batch_size: sentences per batch. Default: 128.
        normalize: scale every vector to length 1. Default: False.
        truncate_dim: keep only this number of leading dimensions. Default: None, all of them.
        int8: round the weights to 8 bits: faster, a little less exact. Default: False.
        encoding: the encoding of tables and texts. Default: None, UTF-8.
        bad_rows: "error" (default) or "skip", which counts rows that cannot be used.
        bad_files: "error" (default) or "skip", which counts and names files that cannot be read.
    """

    column: str | None = None
    id: str | None = None
    columns: tuple[str, ...] = ()
    vectors: str = "float32"
    shard_rows: int = 50_000
    batch_size: int = 128
    normalize: bool = False
    truncate_dim: int | None = None
    int8: bool = False
    encoding: str | None = None
    bad_rows: str = "error"
    bad_files: str = "error"

    def __post_init__(self) -> None:
        require_choice("vectors", self.vectors, VECTOR_TYPES)
        require_choice("bad_rows", self.bad_rows, BAD_ROWS)
        require_choice("bad_files", self.bad_files, BAD_FILES)
        for name in ("shard_rows", "batch_size"):
            value = getattr(self, name)
            if value < 1:
                raise InputError(f"{name} is {value}; expected 1 or more.")
        own = (ID, VECTOR, *((SCALE,) if self.vectors == "int8" else ()))
        taken = [name for name in self.columns if name in own]
        if taken or len(set(self.columns)) < len(self.columns):
            raise InputError(
                f"columns are {', '.join(self.columns)}; expected each once, and none named "
                f"{' or '.join(own)}, which the output has of its own"
                + (" (a column of ids is chosen with --id)." if ID in taken else ".")
            )

    def read_columns(self, is_table: bool) -> tuple[str, ...]:
        """Returns the columns to read from a file, that of the texts first."""
        text = self.column if is_table and self.column is not None else LINE_COLUMN
        return (text, *((self.id,) if self.id else ()), *self.columns)


@dataclass(frozen=True)
class ShardSettings:
    """What a worker has to know about a run, beside the model and the shard.

    Attributes:
        output: the folder of the run.
        job: the fingerprint of the run, which every shard carries.
        options: how to encode.
        dim: the dimension of the vectors that are written.
        types: the Arrow types of the copied columns, by name.
    """

    output: Path
    job: str
    options: BulkOptions
    dim: int
    types: dict[str, object]
