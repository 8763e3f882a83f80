"""Any part of a file of rows, without reading what is before it where that is possible.

A pass over the file notes where every so many rows begin. Lines of a plain file and rows of Parquet
are then found at once; a compressed file, UTF-16 text and Excel are read from their start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from genpool.data.encodings import Encoding, TableEncoding
from genpool.data.excel import excel_records
from genpool.data.formats import csv_records, json_records, tsv_records
from genpool.data.parquet import parquet_records
from genpool.data.rows import BadRow, Record
from genpool.data.sentences import parquet_rows
from genpool.data.table_files import table_format
from genpool.disk.files import COMPRESSED, RawLine, raw_lines
from genpool.errors import DataError, unknown_name

#: the only column of a file with one text per line
LINE_COLUMN = "text"
#: the offset of a place that cannot be gone to
NO_OFFSET = -1


class Start(NamedTuple):
    """Where a slice begins.

    Attributes:
        row: its first row, from 0; rows are counted as the file has them, bad ones too.
        line: the line on which that row begins, from 1.
        offset: the offset of that line, or -1 where the file has to be read from its start.
    """

    row: int
    line: int
    offset: int


@dataclass(frozen=True)
class RowScan:
    """What a pass over a file found.

    Attributes:
        rows: the number of rows.
        head_lines: lines before the first row: the header.
        starts: where each slice begins.
    """

    rows: int = 0
    head_lines: int = 0
    starts: list[Start] = field(default_factory=list)


class RowFile:
    """A file of rows: a table by its name, or else one text per line.

    Args:
        path: the file.
        columns: the columns that are read; a file of lines has only "text".
        encoding: the encoding of a table. None (default): UTF-8.
    """

    def __init__(
        self, path: str | Path, columns: Sequence[str], encoding: str | None = None
    ) -> None:
        self.path, self.columns = Path(path), tuple(columns)
        self.kind = table_format(self.path)
        self._encoding = TableEncoding(encoding)
        compressed = self.path.suffix.lower() in COMPRESSED
        self._can_seek = not compressed and not self._encoding.is_wide

    def scan(self, slice_rows: int) -> RowScan:
        """Returns where each slice of `slice_rows` rows begins, the last one may be shorter.

        Raises:
            DataError: the file cannot be read, or lacks a column.
        """
        first = next(self._records(self._encoding, self._choose), None)
        if first is None:
            return RowScan()
        if self.kind == ".parquet" and self._can_seek:
            rows = parquet_rows(self.path)
            starts = [Start(row, row + 1, NO_OFFSET) for row in range(0, rows, slice_rows)]
            return RowScan(rows, 0, starts)
        head_lines = 0 if self.kind in (None, ".jsonl", ".ndjson") else first.line - 1
        rows, starts = 0, []
        for line, offset in self._places():
            if rows % slice_rows == 0:
                starts.append(Start(rows, line, offset if self._can_seek else NO_OFFSET))
            rows += 1
        return RowScan(rows, head_lines, starts)

    def read(self, start: Start, rows: int, head_lines: int) -> Iterator[Record]:
        """Yields `rows` rows from a start that `scan` found; unusable ones hold a BadRow.

        Raises:
            DataError: the file cannot be read.
        """
        if self.kind == ".parquet" and self._can_seek:
            return islice(parquet_records(self.path, self._choose, start.row), rows)
        if start.offset == NO_OFFSET:
            records = self._records(self._encoding, self._choose)
            return islice(records, start.row, start.row + rows)
        lines = _LinesFrom(self._encoding, start, head_lines)
        return islice(self._records(lines, self._choose_any), rows)

    def _records(
        self, encoding: Encoding, choose: Callable[..., Sequence[str]]
    ) -> Iterator[Record]:
        path = self.path
        if self.kind == ".parquet":
            return parquet_records(path, choose)
        if self.kind in (".xlsx", ".xlsm"):
            return excel_records(path, choose)
        if self.kind == ".csv":
            return csv_records(path, choose, encoding=encoding)
        if self.kind == ".tsv":
            return tsv_records(path, choose, encoding=encoding)
        if self.kind is not None:
            return json_records(path, choose, encoding)
        choose([LINE_COLUMN], path, None)
        return _line_records(path, encoding)

    def _places(self) -> Iterator[tuple[int, int]]:
        """Yields line and offset of every row."""
        if self.kind in (None, ".jsonl", ".ndjson"):  # every line is a row: nothing is parsed
            for line in self._encoding.lines(self.path):
                if self.kind is None or line.data.strip():
                    yield line.number, line.offset
            return
        watched = _WatchedLines(self._encoding)
        for record in self._records(watched, self._choose):
            yield record.line, watched.offset_of(record.line)

    def _choose(self, names: Sequence[str], path: Path, line: int | None) -> list[str]:
        wanted = list(dict.fromkeys(self.columns))
        for name in wanted:
            if name not in names:
                raise DataError(unknown_name("column", name, names), path, line)
            if names.count(name) > 1:
                raise DataError(f"has {names.count(name)} columns named {name!r}", path, line)
        return wanted

    def _choose_any(self, names: Sequence[str], path: Path, line: int | None) -> list[str]:
        return list(dict.fromkeys(self.columns))  # a few lines of JSON may lack a column


def _line_records(path: Path, encoding: Encoding) -> Iterator[Record]:
    for line in encoding.lines(path):
        try:
            yield Record(path, line.number, {LINE_COLUMN: encoding.decode(line)})
        except BadRow as bad:
            yield Record(path, line.number, bad)


class _WatchedLines(Encoding):
    """Lines whose offsets are kept until the row that begins there is known."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._passed: deque[RawLine] = deque()

    def lines(self, path: Path) -> Iterator[RawLine]:
        self._passed.clear()
        for line in self._encoding.lines(path):
            self._passed.append(RawLine(line.number, line.offset, b""))
            yield line

    def decode(self, line: RawLine) -> str:
        return self._encoding.decode(line)

    def offset_of(self, number: int) -> int:
        """Returns the offset of a line; earlier ones are forgotten."""
        while self._passed and self._passed[0].number < number:
            self._passed.popleft()
        return self._passed[0].offset if self._passed else NO_OFFSET


class _LinesFrom(Encoding):
    """The lines of the header, then those from a start on, with the numbers that they have."""

    def __init__(self, encoding: Encoding, start: Start, head_lines: int) -> None:
        self._encoding, self._start, self._head_lines = encoding, start, head_lines

    def lines(self, path: Path) -> Iterator[RawLine]:
        yield from islice(self._encoding.lines(path), self._head_lines)
        yield from raw_lines(path, first=self._start.line, offset=self._start.offset)

    def decode(self, line: RawLine) -> str:
        return self._encoding.decode(line)
