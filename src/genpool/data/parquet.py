"""The rows of a Parquet file, as records; the line of a record is its row number, from 1."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from genpool.data.formats import Choose
from genpool.data.rows import BadRow, Record
from genpool.disk.files import COMPRESSED, open_bytes
from genpool.errors import DataError, require_extra

_BATCH_ROWS = 1024


def parquet_records(path: Path, choose: Choose) -> Iterator[Record]:
    """Yields the columns that `choose` names, with a batch of rows in memory at a time."""
    with require_extra("reading Parquet", "parquet"):
        import pyarrow
        from pyarrow import parquet

    before = 0
    with _seekable(path) as stream:
        try:
            file = parquet.ParquetFile(stream)
            columns = list(choose(file.schema_arrow.names, path, None))
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
                for row, values in enumerate(_rows(batch), start=before + 1):
                    yield Record(path, row, values)
                before += batch.num_rows
        except pyarrow.ArrowException as error:
            raise DataError(f"is not a Parquet file that can be read: {error}", path) from error


def _rows(batch: Any) -> list[Mapping[str, object] | BadRow]:
    try:
        rows: list[Mapping[str, object] | BadRow] = batch.to_pylist()
    except UnicodeDecodeError as error:
        if batch.num_rows > 1:
            return [row for at in range(batch.num_rows) for row in _rows(batch.slice(at, 1))]
        return [BadRow("bad UTF-8", f"is not UTF-8: {error}")]
    return rows


@contextmanager
def _seekable(path: Path) -> Iterator[IO[bytes]]:
    # A Parquet file is read from its end, which a compressed stream can only do by starting over.
    with open_bytes(path) as stream:
        if path.suffix.lower() not in COMPRESSED:
            yield stream
            return
        with tempfile.TemporaryFile() as unpacked:
            shutil.copyfileobj(stream, unpacked)
            unpacked.seek(0)
            yield unpacked
