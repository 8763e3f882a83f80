"""Any part of a file of rows, without reading what is before it where that is possible.

A pass over the file notes where every so many rows begin. Lines of a plain file and rows of Parquet
are then found at once; a compressed file, UTF-16 text and Excel are read from their start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from genpool.data.formats import Choose, Lines
from genpool.data.rows import BadRow, Record
from genpool.data.table_files import (
    JSON_SUFFIXES,
    count_parquet_rows,
    parquet_records,
    table_format,
    table_records,
)
from genpool.data.text_files import TextEncoding
from genpool.disk.files import COMPRESSED, raw_lines
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


class RowScan(NamedTuple):
    """What a pass over a file found: its rows, the lines of its header, where slices begin."""

    rows: int
    head_lines: int
    starts: list[Start]


class RowFile:
    """A file of rows: a table by its name, or else one text per line, in the column "text"."""

    def __init__(
        self, path: str | Path, columns: Sequence[str], encoding: str | None = None
    ) -> None:
        self.path, self.columns = Path(path), tuple(dict.fromkeys(columns))
        self.kind = table_format(self.path)
        self._encoding = TextEncoding(encoding)
        compressed = self.path.suffix.lower() in COMPRESSED
        self._can_seek = not compressed and not self._encoding.is_wide

    def scan(self, slice_rows: int) -> RowScan:
        """Returns where each slice of `slice_rows` rows begins; the last one may be shorter."""
        first = next(self._records(self._choose), None)
        if first is None:
            return RowScan(0, 0, [])
        if self.kind == ".parquet" and self._can_seek:
            rows = count_parquet_rows(self.path)
            starts = [Start(row, row + 1, NO_OFFSET) for row in range(0, rows, slice_rows)]
            return RowScan(rows, 0, starts)
        has_header = self.kind is not None and self.kind not in JSON_SUFFIXES
        rows, starts = 0, []
        for line, offset in self._places(has_header):
            if rows % slice_rows == 0:
                starts.append(Start(rows, line, offset if self._can_seek else NO_OFFSET))
            rows += 1
        return RowScan(rows, first.line - 1 if has_header else 0, starts)

    def read(self, start: Start, rows: int, head_lines: int) -> Iterator[Record]:
        """Yields `rows` rows from a start that `scan` found; unusable ones hold a BadRow."""
        if self.kind == ".parquet" and self._can_seek:
            return islice(parquet_records(self.path, self._choose, start.row), rows)
        if start.offset == NO_OFFSET:
            return islice(self._records(self._choose), start.row, start.row + rows)
        head = islice(self._encoding.lines(self.path), head_lines)
        lines = chain(head, raw_lines(self.path, first=start.line, offset=start.offset))
        # A few lines of JSON may lack a column, so the columns are not looked up again.
        return islice(self._records(lambda *_: self.columns, lines), rows)

    def _records(self, choose: Choose, lines: Lines = None) -> Iterator[Record]:
        if self.kind is not None:
            return table_records(self.path, choose, self._encoding, lines=lines)
        choose([LINE_COLUMN], self.path, None)
        return self._line_records(lines or self._encoding.lines(self.path))

    def _line_records(self, lines: Lines) -> Iterator[Record]:
        for line in lines or ():
            try:
                yield Record(self.path, line.number, {LINE_COLUMN: self._encoding.decode(line)})
            except BadRow as bad:
                yield Record(self.path, line.number, bad)

    def _places(self, has_header: bool) -> Iterator[tuple[int, int]]:
        """Yields line and offset of every row."""
        if has_header:
            yield from ((record.line, record.offset) for record in self._records(self._choose))
            return
        for line in self._encoding.lines(self.path):  # every line is a row: nothing is parsed
            if self.kind is None or line.data.strip():
                yield line.number, line.offset

    def _choose(self, names: Sequence[str], path: Path, line: int | None) -> Sequence[str]:
        for name in self.columns:
            if name not in names:
                raise DataError(unknown_name("column", name, names), path, line)
            if names.count(name) > 1:
                raise DataError(f"has {names.count(name)} columns named {name!r}", path, line)
        return self.columns
