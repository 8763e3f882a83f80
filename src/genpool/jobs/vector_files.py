"""Files of vectors, written chunk by chunk: .npy, .jsonl and .parquet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genpool.disk.files import atomic_file
from genpool.disk.growing_array import growing_array
from genpool.errors import MissingExtraError

Chunk = NDArray[np.float32]
#: sentences and their vectors, once for each chunk
Write = Callable[[list[str], Chunk], None]


@contextmanager
def file_writer(target: Path, dim: int) -> Iterator[Write]:
    """Yields a function that writes sentences and their vectors; the file appears at the end."""
    with atomic_file(target) as temporary, KINDS[target.suffix](temporary, dim) as write:
        yield write


@contextmanager
def _npy(path: Path, dim: int) -> Iterator[Write]:
    """An array (sentences, dim)."""
    with growing_array(path, "<f4", (dim,)) as append:
        yield lambda sentences, vectors: append(vectors)


@contextmanager
def _jsonl(path: Path, dim: int) -> Iterator[Write]:
    with path.open("w", encoding="utf-8") as file:

        def write(sentences: list[str], vectors: Chunk) -> None:
            for sentence, vector in zip(sentences, vectors, strict=True):
                row = {"sentence": sentence, "vector": [float(f"{x:.7g}") for x in vector]}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")

        yield write


@contextmanager
def _parquet(path: Path, dim: int) -> Iterator[Write]:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MissingExtraError("writing Parquet", "parquet") from error
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


#: opens a file for vectors of a number of dimensions, by its suffix
KINDS: dict[str, Callable[[Path, int], AbstractContextManager[Write]]] = {
    ".npy": _npy,
    ".parquet": _parquet,
    ".jsonl": _jsonl,
}
