"""Which files are tables, by their names, and the rows of any of them: text, Parquet or Excel."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import IO, Any, NamedTuple

from genpool.data.columns import require_columns
from genpool.data.reader import BadRow, Record
from genpool.data.text_files import (
    Choose,
    Lines,
    TextEncoding,
    json_records,
    list_names,
    text_records,
)
from genpool.disk.files import COMPRESSED, open_bytes, raw_lines, uncompressed_name
from genpool.errors import DataError, GenpoolError, require_extra, unknown_name

TABLE_SUFFIXES = (".tsv", ".csv", ".jsonl", ".ndjson", ".parquet", ".xlsx", ".xlsm")
#: spreadsheets that are not read
_OTHER_SPREADSHEETS = (".xls", ".xlsb", ".ods", ".numbers")
_SAVE_AS = "open it in a spreadsheet program and save it as .xlsx or as .csv"
#: names that a dev set may have instead
_OTHER_NAMES = {"validation": "dev", "valid": "dev", "val": "dev"}
#: how names of files begin that are no data: hidden ones, and the locks of open Excel files
_NO_DATA = (".", "~$")
_BATCH_ROWS = 1024
#: the only column of a file with one text per line
LINE_COLUMN = "text"
#: the offset of a place that cannot be gone to
NO_OFFSET = -1


def table_format(path: Path) -> str | None:
    """Returns the suffix of a table without that of its compression; None if it is no table."""
    suffix = Path(uncompressed_name(path)).suffix.lower()
    return suffix if suffix in TABLE_SUFFIXES else None


def require_table(file: Path) -> None:
    """Raises DataError if a file is not a table by its name."""
    if table_format(file) is not None:
        return
    if Path(uncompressed_name(file)).suffix.lower() in _OTHER_SPREADSHEETS:
        raise DataError(f"is a spreadsheet of a kind that is not read; {_SAVE_AS}", file)
    kinds = f"{', '.join(TABLE_SUFFIXES)} (or these with {', '.join(COMPRESSED)})"
    raise DataError(
        f"is not a table by its name; expected {kinds}. If it is one, rename it; lines of text "
        "have no columns to name",
        file,
    )


def tables_of_folder(folder: Path) -> dict[str, Path]:
    """Returns the tables of a folder by the names of their splits; raises DataError for none."""
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith(_NO_DATA) or not path.is_file() or table_format(path) is None:
            continue
        stem = Path(uncompressed_name(path)).stem
        split = _OTHER_NAMES.get(stem.lower(), stem)
        if split in files:
            problem = f"{files[split].name} and {path.name} are both {split!r}; keep one of them"
            raise DataError(problem, folder)
        files[split] = path
    if not files:
        expected = ", ".join(f"train{suffix}" for suffix in TABLE_SUFFIXES)
        problem = f"looked for tables such as {expected}, but it holds: {list_names(folder)}"
        raise DataError(problem, folder)
    return files


def table_records(
    path: Path,
    choose: Choose,
    encoding: TextEncoding,
    *,
    quotes: bool | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    lines: Lines = None,
) -> Iterator[Record]:
    """Yields the rows of a table, as its name says how, or else the lines of a text file."""
    kind = table_format(path)
    match kind:
        case None:
            choose([LINE_COLUMN], path, None)
            return (
                Record(path, line.number, _line_values(encoding.decode(line)), line.offset)
                for line in lines or encoding.lines(path)
            )
        case ".parquet":
            return parquet_records(path, choose)
        case ".xlsx" | ".xlsm":
            return excel_records(path, choose, sheet)
        case ".jsonl" | ".ndjson":
            return json_records(path, choose, encoding, lines)
    quotes = kind == ".csv" if quotes is None else quotes
    if delimiter is None and not (quotes and kind == ".csv"):  # then it is looked for
        delimiter = "\t" if kind == ".tsv" else ","
    return text_records(path, choose, encoding, delimiter, quotes, lines=lines)


def _line_values(text: str | BadRow) -> dict[str, object] | BadRow:
    return text if isinstance(text, BadRow) else {LINE_COLUMN: text}


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


def parquet_records(path: Path, choose: Choose, skip: int = 0) -> Iterator[Record]:
    """Yields the chosen columns of the rows after `skip`, a batch at a time; the line is the row.

    Row groups before these rows are not read.
    """
    with require_extra("reading Parquet", "parquet"):
        import pyarrow
        from pyarrow import parquet

    with open_seekable(path) as stream:
        try:
            file = parquet.ParquetFile(stream)
            columns = list(choose(file.schema_arrow.names, path, None))
            row, groups = 0, list(range(file.num_row_groups))
            while groups and row + (rows := file.metadata.row_group(groups[0]).num_rows) <= skip:
                row += rows
                del groups[0]
            for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=columns):
                skipped = max(skip - row, 0)
                for at, values in enumerate(_parquet_rows(batch.slice(skipped)), start=1):
                    yield Record(path, row + skipped + at, values)
                row += batch.num_rows
        except (pyarrow.ArrowException, UnicodeDecodeError) as error:  # of the columns' names
            raise DataError(f"is not a Parquet file that can be read: {error}", path) from error


def _parquet_rows(batch: Any) -> list[Mapping[str, object] | BadRow]:
    try:
        rows: list[Mapping[str, object] | BadRow] = batch.to_pylist()
    except UnicodeDecodeError as error:
        if batch.num_rows > 1:
            return [_parquet_rows(batch.slice(at, 1))[0] for at in range(batch.num_rows)]
        return [BadRow("bad UTF-8", f"is not UTF-8: {error}")]
    return rows


def count_parquet_rows(path: Path) -> int:
    """Returns the number of rows that a Parquet file says it has."""
    with require_extra("reading Parquet", "parquet"):
        from pyarrow import parquet
    rows: int = parquet.read_metadata(path).num_rows
    return rows


def excel_records(path: Path, choose: Choose, sheet: str | None = None) -> Iterator[Record]:
    """Yields the rows of a sheet, the first unless another is named; the line is its row in it."""
    with require_extra(f"reading Excel files (or {_SAVE_AS})", "excel"):
        import openpyxl

    with open_seekable(path) as stream:
        try:
            # Values as the program that saved the file computed them, one row in memory at a time.
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            with closing(book):
                if sheet is not None and sheet not in book.sheetnames:
                    raise DataError(unknown_name("sheet", sheet, book.sheetnames), path)
                chosen = book.worksheets[0] if sheet is None else book[sheet]
                yield from _sheet_records(path, choose, chosen)
        except GenpoolError:
            raise
        except Exception as error:  # the library raises whatever a damaged part leads to
            text = str(error) or type(error).__name__
            problem = f"is not an Excel file that can be read: {text}; {_SAVE_AS}"
            raise DataError(problem, path) from None


def _sheet_records(path: Path, choose: Choose, sheet: Any) -> Iterator[Record]:
    header: list[str] = []
    waiting: list[Record] = []  # empty rows are rows too, except before the header and at the end
    for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
        is_empty = all(cell is None for cell in cells)
        if header:
            # Rows may end early: cells that were never filled are not in the file.
            waiting.append(Record(path, number, dict(zip_longest(header, cells[: len(header)]))))
            if not is_empty:
                yield from waiting
                waiting.clear()
        elif not is_empty:
            header = ["" if cell is None else str(cell).strip() for cell in cells]
            choose([name for name in header if name], path, number)
    if not header:
        raise DataError("is empty; expected a first row with the names of the columns", path)


class Start(NamedTuple):
    """Where a slice begins."""

    row: int  # its first row, from 0; rows are counted as the file has them, bad ones too
    line: int  # on which that row begins, from 1
    offset: int  # of that line, or -1 where the file has to be read from its start


class RowScan(NamedTuple):
    """What a pass over a file found."""

    rows: int
    head_lines: int  # before the first row
    starts: list[Start]


class RowFile:
    """A file of rows, of which any part is read: a table, or else lines in the column "text".

    A first pass notes where every so many rows begin. Lines of a plain file and rows of Parquet are
    then found at once; a compressed file, UTF-16 text and Excel are read from their start.
    """

    def __init__(
        self, path: str | Path, columns: Sequence[str], encoding: str | None = None
    ) -> None:
        self.path, self.columns = Path(path), tuple(dict.fromkeys(columns))
        self.kind = table_format(self.path)
        self._encoding = TextEncoding(encoding)
        is_compressed = self.path.suffix.lower() in COMPRESSED
        self._can_seek = not is_compressed and not self._encoding.is_wide

    def scan(self, slice_rows: int) -> RowScan:
        """Returns where each slice of `slice_rows` rows begins; the last one may be shorter."""
        if self.kind == ".parquet" and self._can_seek:
            next(self._records(self._choose), None)
            rows = count_parquet_rows(self.path)
            starts = [Start(row, row + 1, NO_OFFSET) for row in range(0, rows, slice_rows)]
            return RowScan(rows, 0, starts)
        rows, starts = 0, []
        for record in self._records(self._choose):
            if rows % slice_rows == 0:
                offset = record.offset if self._can_seek else NO_OFFSET
                starts.append(Start(rows, record.line, offset))
            rows += 1
        return RowScan(rows, starts[0].line - 1 if starts else 0, starts)

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
        return table_records(self.path, choose, self._encoding, lines=lines)

    def _choose(self, names: Sequence[str], path: Path, line: int | None) -> Sequence[str]:
        require_columns(self.columns, names, path, line)
        return self.columns
