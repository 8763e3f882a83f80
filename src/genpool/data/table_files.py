"""The rows of any file: TSV, CSV, JSON Lines, Parquet, Excel, or lines of text."""

from __future__ import annotations

import csv
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import IO, Any, NamedTuple

from genpool.data.columns import require_columns
from genpool.data.reader import BadRow, Record
from genpool.data.text_files import SAVE_AS, TextEncoding, json_values, table_format
from genpool.disk.files import COMPRESSED, RawLine, open_bytes, raw_lines
from genpool.errors import DataError, GenpoolError, require_extra, unknown_name

#: takes the names of the columns, the path and the line of the header, and returns those to read
Choose = Callable[[Sequence[str], Path, int | None], Sequence[str]]

_BATCH_ROWS = 1024
#: longest field of a CSV file; a quote that is never closed is noticed here, not at the file's end
MAX_FIELD_CHARACTERS = 2**24
#: lines of a JSON Lines file whose fields together are its columns
JSON_HEADER_LINES = 100
#: what may separate the fields of a CSV file, the usual one first
DELIMITERS = ",;\t|"
#: the only column of a file with one text per line
LINE_COLUMN = "text"
#: the offset of a place that cannot be gone to
NO_OFFSET = -1


@contextmanager
def open_seekable(path: Path) -> Iterator[IO[bytes]]:
    """Opens a file to be read at any place; a compressed one is unpacked into a temporary file."""
    with open_bytes(path) as stream:
        if path.suffix.lower() not in COMPRESSED:
            yield stream
            return
        # A compressed stream can go back only by starting over.
        with tempfile.TemporaryFile() as unpacked:
            shutil.copyfileobj(stream, unpacked)
            unpacked.seek(0)
            yield unpacked


class Start(NamedTuple):
    """Where a slice begins."""

    row: int  # its first row, from 0; bad rows count too
    line: int  # on which that row begins, from 1
    offset: int  # of that line, or -1 where the file has to be read from its start


class RowScan(NamedTuple):
    """What a pass over a file found."""

    rows: int
    head_lines: int  # before the first row
    starts: list[Start]


class RowFile:
    """A file of rows: a table by its name, or else lines in the column "text".

    `scan` notes where every so many rows begin, and `read` goes there: at once in plain text and
    Parquet; other files are read from their start. Both use `columns`. `kind` is the suffix of a
    table whose name has another; in `short_rows` the fields after those that are used may be left
    out. The other options are those of `TableReader`.
    """

    def __init__(
        self,
        path: str | Path,
        columns: Sequence[str] = (),
        encoding: str | None = None,
        *,
        kind: str | None = None,
        quotes: bool | None = None,
        delimiter: str | None = None,
        sheet: str | None = None,
        short_rows: bool = False,
    ) -> None:
        self.path, self.columns = Path(path), tuple(dict.fromkeys(columns))
        self.kind = kind or table_format(self.path)
        self._encoding, self._sheet, self._short_rows = TextEncoding(encoding), sheet, short_rows
        self._quotes = self.kind == ".csv" if quotes is None else quotes
        self._delimiter = delimiter
        if delimiter is None and not (self._quotes and self.kind == ".csv"):
            self._delimiter = "\t" if self.kind == ".tsv" else ","
        is_compressed = self.path.suffix.lower() in COMPRESSED
        self._can_seek = not is_compressed and not self._encoding.is_wide

    def records(
        self, choose: Choose | None = None, lines: Iterable[RawLine] | None = None
    ) -> Iterator[Record]:
        """Yields the rows; `lines` are the lines to read of a text file, by default all."""
        choose = choose or self._choose
        if self.kind == ".parquet":
            return self._parquet_records(choose)
        if self.kind in (".xlsx", ".xlsm"):
            return self._excel_records(choose)
        lines = iter(lines or self._encoding.lines(self.path))
        if self.kind is None:
            return self._line_records(choose, lines)
        if self.kind in (".jsonl", ".ndjson"):
            return self._json_records(choose, lines)
        return self._text_records(choose, lines)

    def scan(self, slice_rows: int) -> RowScan:
        """Returns where each slice of `slice_rows` rows begins; the last one may be shorter."""
        rows, starts = 0, list[Start]()
        if self.kind == ".parquet":
            next(self.records(), None)  # checks the columns
            from pyarrow import parquet

            with open_seekable(self.path) as stream:
                rows = parquet.read_metadata(stream).num_rows
            starts = [Start(row, row + 1, NO_OFFSET) for row in range(0, rows, slice_rows)]
            return RowScan(rows, 0, starts)
        for rows, record in enumerate(self.records(), start=1):
            if (rows - 1) % slice_rows == 0:
                offset = record.offset if self._can_seek else NO_OFFSET
                starts.append(Start(rows - 1, record.line, offset))
        return RowScan(rows, starts[0].line - 1 if starts else 0, starts)

    def read(self, start: Start, rows: int, head_lines: int) -> Iterator[Record]:
        """Yields `rows` rows from a start that `scan` found; unusable ones hold a BadRow."""
        if self.kind == ".parquet":
            return islice(self._parquet_records(self._choose, start.row), rows)
        if start.offset == NO_OFFSET:
            return islice(self.records(), start.row, start.row + rows)
        head = islice(self._encoding.lines(self.path), head_lines)
        lines = chain(head, raw_lines(self.path, first=start.line, offset=start.offset))
        # A few lines of JSON may lack a column, so the columns are not looked up again.
        return islice(self.records(lambda *_: self.columns, lines), rows)

    def _choose(self, names: Sequence[str], path: Path, line: int | None) -> Sequence[str]:
        require_columns(self.columns, names, path, line)
        return self.columns

    def _line_records(self, choose: Choose, lines: Iterator[RawLine]) -> Iterator[Record]:
        choose([LINE_COLUMN], self.path, None)
        for line in lines:
            text = self._encoding.decode(line)
            values = text if isinstance(text, BadRow) else {LINE_COLUMN: text}
            yield Record(self.path, line.number, values, line.offset)

    def _json_records(self, choose: Choose, lines: Iterator[RawLine]) -> Iterator[Record]:
        """Yields one JSON object per line; the fields of the first lines are the columns."""
        records = (
            Record(self.path, line.number, json_values(line, self._encoding), line.offset)
            for line in lines
            if line.data.strip()
        )
        first = list(islice(records, JSON_HEADER_LINES))
        # One line may lack a field that the next ones have: then that line is bad, not the file.
        readable = {row.line: row.values for row in first if not isinstance(row.values, BadRow)}
        if readable:
            names = dict.fromkeys(name for values in readable.values() for name in values)
            choose(list(names), self.path, min(readable))
        for record in chain(first, records):
            if not readable and not isinstance(record.values, BadRow):
                readable[record.line] = record.values
                choose(list(record.values), self.path, record.line)
            yield record

    def _text_records(self, choose: Choose, lines: Iterator[RawLine]) -> Iterator[Record]:
        """Yields rows with the names of the header, the first line that is not empty."""
        header: list[str] = []
        empty_lines: list[RawLine] = []
        min_fields = 0
        for line, fields in self._text_rows(lines):
            if not fields:
                empty_lines.append(line)
                continue
            if len(header) == 1:  # then an empty line between rows is an empty cell
                for empty in empty_lines:
                    yield Record(self.path, empty.number, {header[0]: ""}, empty.offset)
            empty_lines.clear()
            if isinstance(fields, BadRow):
                if not header:
                    raise DataError(fields.problem, self.path, line.number)
                yield Record(self.path, line.number, fields, line.offset)
            elif not header:
                header = fields
                used = choose(header, self.path, line.number)
                min_fields = len(header)
                if self._short_rows:
                    min_fields = 1 + max((header.index(name) for name in used), default=0)
            else:
                values: Mapping[str, object] | BadRow = dict(zip(header, fields, strict=False))
                if not min_fields <= len(fields) <= len(header):
                    problem = f"has {len(fields)} fields; expected {len(header)}, as in the header"
                    values = BadRow("wrong number of fields", problem)
                yield Record(self.path, line.number, values, line.offset)
        if not header:
            problem = "is empty; expected a header line with the names of the columns"
            raise DataError(problem, self.path)

    def _text_rows(self, lines: Iterator[RawLine]) -> Iterator[tuple[RawLine, list[str] | BadRow]]:
        """Yields the line that a row begins on, and its fields; an empty line has none."""
        csv.field_size_limit(MAX_FIELD_CHARACTERS)  # of the process; 131,072 unless it is set
        delimiter = self._delimiter
        for line in lines:
            if not line.data:
                yield line, []
            elif self._quotes:
                if delimiter is None:
                    # Spreadsheet programs write semicolons where the decimal mark is the comma.
                    unquoted = re.sub(r'"[^"]*"', "", str(self._encoding.decode(line)))
                    delimiter = max(DELIMITERS, key=unquoted.count)  # of equal counts the comma
                yield line, self._csv_fields(chain([line], lines), delimiter)
            else:
                text = self._encoding.decode(line)
                yield line, text if isinstance(text, BadRow) else text.split(delimiter)

    def _csv_fields(self, lines: Iterator[RawLine], delimiter: str) -> list[str] | BadRow:
        """Takes the lines of one row, whose fields may be quoted (RFC 4180), and returns these."""
        damage: list[BadRow] = []

        def texts() -> Iterator[str]:
            for line in lines:
                text = self._encoding.decode(line)
                if isinstance(text, BadRow):
                    # The parser still needs the line, to know where its record ends.
                    damage.append(text)
                    text = line.data.decode("utf-8", "replace")
                yield text + "\n"

        try:
            fields = next(csv.reader(texts(), delimiter=delimiter, strict=True))
        except csv.Error as error:
            reason, problem = "bad quoting", f"quotes do not match ({error})"
            if "field limit" in str(error):
                reason = "field too long"
                problem = f"a field has more than {MAX_FIELD_CHARACTERS:,} characters"
            damage.append(BadRow(reason, f"{problem}; is a quote never closed, or not doubled?"))
        return damage[0] if damage else fields

    def _parquet_records(self, choose: Choose, skip: int = 0) -> Iterator[Record]:
        """Yields the chosen columns of the rows after `skip`; the line is the row, from 1.

        A batch is in memory at a time, and row groups before these rows are not read.
        """
        with require_extra("reading Parquet", "parquet"):
            import pyarrow
            from pyarrow import parquet

        with open_seekable(self.path) as stream:
            try:
                file = parquet.ParquetFile(stream)
                columns = list(choose(file.schema_arrow.names, self.path, None))
                row, groups = 0, list(range(file.num_row_groups))
                while groups and row + (n := file.metadata.row_group(groups[0]).num_rows) <= skip:
                    row += n
                    del groups[0]
                for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=columns):
                    skipped = max(skip - row, 0)
                    for at, values in enumerate(_parquet_rows(batch.slice(skipped)), start=1):
                        yield Record(self.path, row + skipped + at, values)
                    row += batch.num_rows
            except (pyarrow.ArrowException, UnicodeDecodeError) as error:  # of the columns' names
                problem = f"is not a Parquet file that can be read: {error}"
                raise DataError(problem, self.path) from error

    def _excel_records(self, choose: Choose) -> Iterator[Record]:
        """Yields the rows of a sheet; the line of a record is its row in the sheet."""
        with require_extra(f"reading Excel files (or {SAVE_AS})", "excel"):
            import openpyxl

        with open_seekable(self.path) as stream:
            try:
                # Values as the program that saved the file computed them, one row at a time.
                book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
                with closing(book):
                    sheets = {sheet.title: sheet for sheet in book.worksheets}
                    name = next(iter(sheets)) if self._sheet is None else self._sheet
                    if name not in sheets:
                        raise DataError(unknown_name("sheet", name, sheets), self.path)
                    yield from _sheet_records(self.path, choose, sheets[name])
            except GenpoolError:
                raise
            except Exception as error:  # the library raises whatever a damaged part leads to
                text = str(error) or type(error).__name__
                problem = f"is not an Excel file that can be read: {text}; {SAVE_AS}"
                raise DataError(problem, self.path) from None


def _parquet_rows(batch: Any) -> list[Mapping[str, object] | BadRow]:
    try:
        rows: list[Mapping[str, object] | BadRow] = batch.to_pylist()
    except UnicodeDecodeError as error:
        if batch.num_rows > 1:
            return [_parquet_rows(batch.slice(at, 1))[0] for at in range(batch.num_rows)]
        return [BadRow("bad UTF-8", f"is not UTF-8: {error}")]
    return rows


def _sheet_records(path: Path, choose: Choose, sheet: Any) -> Iterator[Record]:
    header: list[str] = []
    waiting: list[Record] = []  # empty rows are rows too, except before the header and at the end
    for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
        if header:
            # Rows may end early: cells that were never filled are not in the file.
            waiting.append(Record(path, number, dict(zip_longest(header, cells[: len(header)]))))
        if all(cell is None for cell in cells):
            continue
        if not header:
            header = ["" if cell is None else str(cell).strip() for cell in cells]
            choose([name for name in header if name], path, number)
        yield from waiting
        waiting.clear()
    if not header:
        raise DataError("is empty; expected a first row with the names of the columns", path)
