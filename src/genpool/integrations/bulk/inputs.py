"""What a bulk run reads: its options, its files, and the shards that their rows become."""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from genpool.data.reader import BAD_ROWS, require_choice
from genpool.data.table_files import LINE_COLUMN, RowFile, Start, open_seekable
from genpool.data.text_files import require_existing, table_format
from genpool.disk.files import is_file, is_folder, uncompressed_name
from genpool.errors import DataError, InputError, require_extra
from genpool.tensors.modules import require_positive

with require_extra("genpool.integrations.bulk", "parquet"):
    from pyarrow import parquet

#: what a folder is searched for, beside tables
TEXT_SUFFIXES = (".txt", ".text")
#: bytes at the start and at the end of a file by which it is recognised, beside its size
DIGEST_BYTES = 1 << 16
#: the Arrow type of columns that do not come from Parquet
TEXT_TYPE = "string"
#: the types of the vector column
VECTOR_TYPES = ("float32", "float16", "int8")
ID, VECTOR, SCALE = "id", "vector", "scale"


@dataclass(frozen=True)
class BulkOptions:
    """How `encode_bulk` encodes."""

    column: str | None = None  # of texts; needed only for tables
    id: str | None = None  # the column of ids; None: the file's name and the row: "news/a.csv:17"
    columns: tuple[str, ...] = ()  # that are copied; a file of lines has only "text"
    vectors: str = "float32"  # or "float16", or "int8" with a column `scale` to multiply them by
    shard_rows: int = 50_000
    batch_size: int = 128
    normalize: bool = False  # to length 1
    truncate_dim: int | None = None  # keep only this number of leading dimensions
    int8: bool = False  # weights of 8 bits: faster, a little less exact
    encoding: str | None = None  # of tables and texts; None: UTF-8
    bad_rows: str = "error"  # or "skip", which counts rows that cannot be used
    bad_files: str = "error"  # or "skip", which counts and names files that cannot be read

    def __post_init__(self) -> None:
        require_choice("vectors", self.vectors, VECTOR_TYPES)
        require_choice("bad_rows", self.bad_rows, BAD_ROWS)
        require_choice("bad_files", self.bad_files, BAD_ROWS)
        require_positive(shard_rows=self.shard_rows, batch_size=self.batch_size)
        own = (ID, VECTOR, *((SCALE,) if self.vectors == "int8" else ()))
        taken = [name for name in self.columns if name in own]
        if taken or len(set(self.columns)) < len(self.columns):
            raise InputError(
                f"columns are {', '.join(self.columns)}; expected each once, and none named "
                f"{' or '.join(own)}, which the output has of its own"
                + (" (a column of ids is chosen with --id)." if ID in taken else ".")
            )


class Shard(NamedTuple):
    """A slice of one input file, and the Parquet file that it becomes."""

    name: str  # of the Parquet file
    path: Path  # of the input file
    source: str  # its name in ids
    start: Start
    rows: int  # of the slice, bad ones too
    head_lines: int  # of the input file, before its first row


@dataclass(frozen=True)
class InputFile:
    """An input file and, when it is planned, how it is recognised and where its slices begin."""

    name: str  # in ids and in the manifest
    path: Path
    bytes: int = 0
    digest: str = ""
    rows: int = 0  # bad ones too
    head_lines: int = 0  # before the first row
    starts: list[Start] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)  # Arrow types of the copied columns

    def shards(self, number: int, shard_rows: int) -> Iterator[Shard]:
        """Yields the shards of this file, the `number`-th of the run."""
        path = self.path.resolve()
        for place, start in enumerate(self.starts):
            name, rows = f"part-{number:05d}-{place:05d}.parquet", self.rows - start.row
            yield Shard(name, path, self.name, start, min(shard_rows, rows), self.head_lines)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns an OSError into a DataError with the path of the file that is read."""
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from error


def find_inputs(sources: Iterable[str | Path], output: Path) -> list[InputFile]:
    """Returns the files of all sources (files, folders and globs), sorted by name."""
    files: dict[str, Path] = {}
    for source in sources:
        for name, path in _files_of(str(source), output):
            other = files.setdefault(name, path)
            if other.resolve() != path.resolve():
                raise InputError(
                    f"{other} and {path} would both be {name!r} in ids; name the folder that "
                    "contains both of them, or encode them into two folders."
                )
    return [InputFile(name, files[name]) for name in sorted(files)]


def _files_of(source: str, output: Path) -> list[tuple[str, Path]]:
    """Returns the files of a source with their names, which are paths relative to a folder."""
    if glob.has_magic(source) and not (is_file(source) or is_folder(source)):
        matches = [Path(match) for match in glob.glob(source, recursive=True)]  # noqa: PTH207
        files = [path for path in matches if path.is_file()]
        if not files:
            raise DataError("matches no file", source)
        parts = Path(source).parts
        count = next(place for place, part in enumerate(parts) if glob.has_magic(part))
        base = Path(*parts[:count])  # the folder before the first part with a wildcard
    elif (path := require_existing(source)).is_file():
        files, base = [path], path.parent
    else:
        folder = path.resolve()
        base = folder.parent
        if output.resolve().is_relative_to(folder):
            raise InputError(
                f"the output {output} is inside the input folder {path}; choose another."
            )
        files = [file for file in folder.rglob("*") if _is_input(file, folder)]
        if not files:
            raise DataError("is a folder without tables, .txt or .text files", path)
    return [(file.relative_to(base).as_posix(), file) for file in files]


def _is_input(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith((".", "~$")) for part in path.relative_to(folder).parts)
    suffix = Path(uncompressed_name(path)).suffix.lower()
    is_data = table_format(path) is not None or suffix in TEXT_SUFFIXES
    return path.is_file() and is_data and not hidden


def file_digest(path: Path) -> tuple[int, str]:
    """Returns the size of a file and a checksum of its start and its end."""
    with reading(path), path.open("rb") as file:
        size = path.stat().st_size
        digest = hashlib.sha256(file.read(DIGEST_BYTES))
        file.seek(max(size - DIGEST_BYTES, 0))
        digest.update(file.read(DIGEST_BYTES))
    return size, f"sha256:{digest.hexdigest()}"


def plan_file(file: InputFile, size: int, digest: str, options: BulkOptions) -> InputFile:
    """Finds where the slices of a file begin, in one pass; of Parquet, the footer tells it."""
    rows = open_rows(file.path, options)
    if rows.kind is not None and options.column is None:
        raise InputError(f"{file.path} is a table; say which column holds the sentences: --column.")
    with reading(file.path):
        scan = rows.scan(options.shard_rows)
        types = dict.fromkeys(options.columns, TEXT_TYPE)
        if rows.kind == ".parquet":
            types = {name: str(kind) for name, kind in column_types(rows.path, types).items()}
    return replace(file, bytes=size, digest=digest, types=types, **scan._asdict())


def open_rows(path: Path, options: BulkOptions) -> RowFile:
    """Returns the rows of an input file, the column of texts first."""
    is_table = table_format(path) is not None
    text = options.column if is_table and options.column is not None else LINE_COLUMN
    columns = (text, *((options.id,) if options.id else ()), *options.columns)
    return RowFile(path, columns, options.encoding)


def column_types(path: Path, columns: Iterable[str]) -> dict[str, Any]:
    """Returns the Arrow types of columns of a Parquet file."""
    with open_seekable(path) as stream:
        schema = parquet.read_schema(stream)
    return {name: schema.field(name).type for name in columns}
