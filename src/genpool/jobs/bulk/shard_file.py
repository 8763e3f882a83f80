"""The Parquet file of a shard: ids, copied columns, vectors of a fixed size."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from genpool.errors import require_extra
from genpool.jobs.bulk.options import ID, SCALE, VECTOR, ShardSettings
from genpool.tensors.int8_rows import quantize_rows

Vectors = NDArray[np.float32]
#: ids, values of the copied columns (one list per column), vectors (n, dim)
Write = Callable[[Sequence[str], Sequence[Sequence[object]], Vectors], None]
#: the key of the metadata of the file, and of its JSON object
METADATA = "genpool"


class ShardWriter:
    """Writes the rows of a shard, chunk by chunk.

    Args:
        writer: of pyarrow.
        schema: of the file.
        settings: of the run.
    """

    def __init__(self, writer: Any, schema: Any, settings: ShardSettings) -> None:
        self._writer, self._schema, self._settings = writer, schema, settings

    def write(
        self, ids: Sequence[str], columns: Sequence[Sequence[object]], vectors: Vectors
    ) -> None:
        """Adds rows.

        Args:
            ids: of the rows.
            columns: the values of the copied columns, a list for each.
            vectors: (n, dim).
        """
        import pyarrow as arrow

        fields = {name: self._schema.field(name).type for name in self._schema.names}
        copied = [
            arrow.array(values, fields[name])
            for name, values in zip(self._settings.options.columns, columns, strict=True)
        ]
        arrays = [arrow.array(ids, arrow.string()), *copied, *self._vector_arrays(vectors)]
        self._writer.write_table(arrow.table(arrays, schema=self._schema))

    def add_metadata(self, values: dict[str, object]) -> None:
        """Adds a JSON object to the file, for `read_metadata`."""
        self._writer.add_key_value_metadata({METADATA: json.dumps(values, sort_keys=True)})

    def _vector_arrays(self, vectors: Vectors) -> list[Any]:
        import pyarrow as arrow

        kind, dim = self._settings.options.vectors, self._settings.dim
        if kind != "int8":
            flat = arrow.array(vectors.astype(kind).ravel())
            return [arrow.FixedSizeListArray.from_arrays(flat, dim)]
        integers, scales = quantize_rows(torch.from_numpy(vectors))  # (n, dim), (n, 1)
        flat = arrow.array(integers.numpy().ravel())
        return [
            arrow.FixedSizeListArray.from_arrays(flat, dim),
            arrow.array(scales.squeeze(1).numpy()),
        ]


@contextmanager
def shard_writer(path: Path, settings: ShardSettings) -> Iterator[ShardWriter]:
    """Opens a Parquet file for the rows of a shard.

    Columns: id (string), the copied columns, vector (fixed-size list) and, for int8, scale.
    """
    with require_extra("writing Parquet", "parquet"):
        import pyarrow as arrow
        from pyarrow import parquet
    options = settings.options
    values = {"float32": arrow.float32(), "float16": arrow.float16(), "int8": arrow.int8()}
    vector = [(VECTOR, arrow.list_(values[options.vectors], settings.dim))]
    scale = [(SCALE, arrow.float32())] if options.vectors == "int8" else []
    copied = [(name, settings.types[name]) for name in options.columns]
    schema = arrow.schema([(ID, arrow.string()), *copied, *vector, *scale])
    texts = [ID, *options.columns]
    # Parquet has no integers of 8 bits: only as numbers of a dictionary do they take a byte each.
    bytes_of = [f"{VECTOR}.list.element"] if options.vectors == "int8" else []
    with parquet.ParquetWriter(
        path,
        schema,
        # Vectors neither repeat nor compress; texts do both.
        use_dictionary=[*options.columns, *bytes_of],
        compression={name: "zstd" if name in texts else "none" for name in schema.names},
    ) as writer:
        yield ShardWriter(writer, schema, settings)


def read_metadata(path: Path) -> dict[str, Any]:
    """Returns the JSON object of a finished shard; empty if the file is no such shard."""
    with require_extra("reading Parquet", "parquet"):
        import pyarrow
        from pyarrow import parquet
    try:
        metadata = parquet.read_metadata(path).metadata or {}
        values = json.loads(metadata.get(METADATA.encode(), b"{}"))
    except (pyarrow.ArrowException, OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}
