"""The rows of a Parquet file, as records; the line of a record is its row number, from 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from genpool.data.formats import Choose
from genpool.data.rows import BadRow, Record
from genpool.data.seekable import open_seekable
from genpool.errors import DataError, require_extra

_BATCH_ROWS = 1024


def parquet_records(path: Path, choose: Choose, skip: int = 0) -> Iterator[Record]:
    """Yields the columns that `choose` names, with a batch of rows in memory at a time.

    Args:
        path: the file.
        choose: as in `genpool.data.formats`.
        skip: rows to leave out at the start; row groups without others are not read. Default: 0.
    """
    with require_extra("reading Parquet", "parquet"):
        import pyarrow
        from pyarrow import parquet

    with open_seekable(path) as stream:
        try:
            file = parquet.ParquetFile(stream)
            columns = list(choose(file.schema_arrow.names, path, None))
            groups, before = _groups_from(file.metadata, skip)
            for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=columns):
                after = before + batch.num_rows
                if after > skip:
                    wanted = batch.slice(max(skip - before, 0))
                    for row, values in enumerate(_rows(wanted), start=max(skip, before) + 1):
                        yield Record(path, row, values)
                before = after
        except (pyarrow.ArrowException, UnicodeDecodeError) as error:  # of the columns' names
            raise DataError(f"is not a Parquet file that can be read: {error}", path) from error


def _groups_from(metadata: Any, skip: int) -> tuple[list[int], int]:
    """Returns the row groups that have rows after the first `skip`, and the rows before them."""
    before = 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        if before + rows > skip:
            return list(range(group, metadata.num_row_groups)), before
        before += rows
    return [], before


def _rows(batch: Any) -> list[Mapping[str, object] | BadRow]:
    try:
        rows: list[Mapping[str, object] | BadRow] = batch.to_pylist()
    except UnicodeDecodeError as error:
        if batch.num_rows > 1:
            return [row for at in range(batch.num_rows) for row in _rows(batch.slice(at, 1))]
        return [BadRow("bad UTF-8", f"is not UTF-8: {error}")]
    return rows
