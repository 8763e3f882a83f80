"""Files of vectors, written chunk by chunk: .npy, .parquet and .jsonl."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genpool.data.sentences import parquet_rows
from genpool.disk.arrays import growing_array
from genpool.disk.atomic import atomic_file
from genpool.disk.files import raw_lines
from genpool.errors import InputError, require_extra
from genpool.search.index_folder import Write, require_finite, to_scalar

Chunk = NDArray[np.float32]
Values = Sequence[Sequence[object]]
#: sentences, their vectors, and the values of columns that are kept, once for each chunk
WriteChunk = Callable[[list[str], Chunk, Values], None]
SENTENCE, VECTOR = "sentence", "vector"


class Layout(NamedTuple):
    """The dimension of the vectors, the columns that are kept, and the table that they are of."""

    dim: int
    columns: Sequence[str] = ()
    table: Path | None = None


class VectorFormat(NamedTuple):
    """Opens a file for vectors, and counts the rows of a finished one."""

    open: Callable[[Path, Layout], AbstractContextManager[WriteChunk]]
    rows: Callable[[Path], int]


@contextmanager
def file_writer(
    path: Path, dim: int, columns: Sequence[str] = (), table: Path | None = None
) -> Iterator[Write]:
    """Yields a function that writes sentences and vectors (n, dim); the file appears at the end.

    Args:
        path: the file, whose suffix says what is written.
        dim: the dimension of the vectors.
        columns: the names of columns whose values are written too. Default: none.
        table: the table that they are of; a Parquet file has types, which are kept. Default: None.

    Raises:
        InputError: a vector is not finite, or the file cannot have these columns.
        DataError: the file cannot be written.
    """
    if columns and path.suffix == ".npy":
        raise InputError(
            f"{path} holds an array only; columns are kept in .parquet, .jsonl and FOLDER/."
        )
    if {SENTENCE, VECTOR}.intersection(columns):
        raise InputError(
            f"the columns {SENTENCE} and {VECTOR} of {path} are written by genpool; leave them out "
            f"of the columns that are kept: {', '.join(columns)}."
        )
    rows, layout = 0, Layout(dim, columns, table)
    with atomic_file(path) as temporary, FORMATS[path.suffix].open(temporary, layout) as write_rows:

        def write(sentences: list[str], vectors: Chunk, values: Values = (), /) -> None:
            nonlocal rows
            require_finite(vectors, rows)
            write_rows(sentences, vectors, values)
            rows += len(vectors)

        yield write


@contextmanager
def _npy(path: Path, layout: Layout) -> Iterator[WriteChunk]:
    """An array (sentences, dim)."""
    with growing_array(path, "<f4", (layout.dim,)) as append:
        yield lambda sentences, vectors, values: append(vectors)


def _npy_rows(path: Path) -> int:
    rows: int = np.load(path, mmap_mode="r").shape[0]
    return rows


@contextmanager
def _jsonl(path: Path, layout: Layout) -> Iterator[WriteChunk]:
    """A JSON object per line: the columns that are kept, sentence and vector."""
    with path.open("w", encoding="utf-8", newline="\n") as file:

        def write(sentences: list[str], vectors: Chunk, values: Values) -> None:
            for place, (sentence, vector) in enumerate(zip(sentences, vectors, strict=True)):
                kept = map(to_scalar, values[place]) if layout.columns else ()
                row: dict[str, Any] = dict(zip(layout.columns, kept, strict=True))
                row |= {SENTENCE: sentence, VECTOR: [float(f"{x:.7g}") for x in vector]}
                file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")

        yield write


def _jsonl_rows(path: Path) -> int:
    return sum(1 for _ in raw_lines(path))


@contextmanager
def _parquet(path: Path, layout: Layout) -> Iterator[WriteChunk]:
    """The columns that are kept, sentence (string) and vector (list of dim float32)."""
    with require_extra("writing Parquet", "parquet"):
        import pyarrow as arrow
        from pyarrow import parquet
    types, text = _column_types(layout), arrow.string()
    vector_type = arrow.list_(arrow.float32(), layout.dim)
    schema = arrow.schema(
        [
            *zip(layout.columns, types, strict=True),
            (SENTENCE, text),
            (VECTOR, vector_type),
        ]
    )
    with parquet.ParquetWriter(path, schema) as writer:

        def write(sentences: list[str], vectors: Chunk, values: Values) -> None:
            flat = arrow.array(vectors.ravel(), arrow.float32())
            columns = [
                arrow.array(
                    [_as_text(row[place]) if kind == text else row[place] for row in values], kind
                )
                for place, kind in enumerate(types)
            ]
            columns += [
                arrow.array(sentences, text),
                arrow.FixedSizeListArray.from_arrays(flat, layout.dim),
            ]
            writer.write_table(arrow.table(columns, schema=schema))

        yield write


def _column_types(layout: Layout) -> list[Any]:
    """Returns the Arrow types of the columns: those of a Parquet file, otherwise text.

    The values of other tables may be of any type in any row, which is known only at their end.
    """
    import pyarrow as arrow
    from pyarrow import parquet

    if layout.table is None or layout.table.suffix.lower() != ".parquet":
        return [arrow.string() for _ in layout.columns]
    schema = parquet.read_schema(layout.table)
    return [schema.field(name).type for name in layout.columns]


def _as_text(value: object) -> str | None:
    scalar = to_scalar(value)
    return None if scalar is None else str(scalar)


#: by the suffix of the file
FORMATS: dict[str, VectorFormat] = {
    ".npy": VectorFormat(_npy, _npy_rows),
    ".parquet": VectorFormat(_parquet, parquet_rows),
    ".jsonl": VectorFormat(_jsonl, _jsonl_rows),
}
