"""Files of vectors, written chunk by chunk: .npy, .parquet and .jsonl."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genpool.disk.atomic_file import atomic_file
from genpool.disk.files import raw_lines
from genpool.disk.growing_array import growing_array
from genpool.errors import require_extra
from genpool.jobs.count_sentences import parquet_rows
from genpool.search.index_folder import require_finite

Chunk = NDArray[np.float32]
#: sentences and their vectors, once for each chunk
Write = Callable[[list[str], Chunk], None]


class VectorFormat(NamedTuple):
    """Opens a file for vectors of a dimension, and counts the rows of a finished one."""

    open: Callable[[Path, int], AbstractContextManager[Write]]
    rows: Callable[[Path], int]


@contextmanager
def file_writer(path: Path, dim: int) -> Iterator[Write]:
    """Yields a function that writes sentences and vectors (n, dim); the file appears at the end.

    Raises:
        InputError: a vector is not finite.
        DataError: the file cannot be written.
    """
    rows = 0
    with atomic_file(path) as temporary, FORMATS[path.suffix].open(temporary, dim) as write_chunk:

        def write(sentences: list[str], vectors: Chunk) -> None:
            nonlocal rows
            require_finite(vectors, rows)
            write_chunk(sentences, vectors)
            rows += len(vectors)

        yield write


@contextmanager
def _npy(path: Path, dim: int) -> Iterator[Write]:
    """An array (sentences, dim)."""
    with growing_array(path, "<f4", (dim,)) as append:
        yield lambda sentences, vectors: append(vectors)


def _npy_rows(path: Path) -> int:
    rows: int = np.load(path, mmap_mode="r").shape[0]
    return rows


@contextmanager
def _jsonl(path: Path, dim: int) -> Iterator[Write]:
    """A JSON object per line: sentence and vector."""
    with path.open("w", encoding="utf-8", newline="\n") as file:

        def write(sentences: list[str], vectors: Chunk) -> None:
            for sentence, vector in zip(sentences, vectors, strict=True):
                row = {"sentence": sentence, "vector": [float(f"{x:.7g}") for x in vector]}
                file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")

        yield write


def _jsonl_rows(path: Path) -> int:
    return sum(1 for _ in raw_lines(path))


@contextmanager
def _parquet(path: Path, dim: int) -> Iterator[Write]:
    """Columns sentence (string) and vector (list of dim float32)."""
    with require_extra("writing Parquet", "parquet"):
        import pyarrow as arrow
        from pyarrow import parquet
    schema = arrow.schema(
        [("sentence", arrow.string()), ("vector", arrow.list_(arrow.float32(), dim))]
    )
    with parquet.ParquetWriter(path, schema) as writer:

        def write(sentences: list[str], vectors: Chunk) -> None:
            flat = arrow.array(vectors.ravel(), arrow.float32())
            columns = [
                arrow.array(sentences, arrow.string()),
                arrow.FixedSizeListArray.from_arrays(flat, dim),
            ]
            writer.write_table(arrow.table(columns, schema=schema))

        yield write


#: by the suffix of the file
FORMATS: dict[str, VectorFormat] = {
    ".npy": VectorFormat(_npy, _npy_rows),
    ".parquet": VectorFormat(_parquet, parquet_rows),
    ".jsonl": VectorFormat(_jsonl, _jsonl_rows),
}
