"""The rows of an Excel sheet, as records; the line of a record is its row in the sheet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import zip_longest
from pathlib import Path
from typing import Any

from genpool.data.formats import Choose
from genpool.data.rows import Record
from genpool.data.seekable import open_seekable
from genpool.errors import DataError, GenpoolError, require_extra, unknown_name

#: spreadsheets that are not read
OTHER_SPREADSHEETS = (".xls", ".xlsb", ".ods", ".numbers")
SAVE_AS = "open it in a spreadsheet program and save it as .xlsx or as .csv"


def excel_records(path: Path, choose: Choose, sheet: str | None = None) -> Iterator[Record]:
    """Yields the rows of a sheet, the first unless another is named; its first row is the header.

    Empty rows at the end are left out; others are rows with empty cells.
    """
    with require_extra(f"reading Excel files (or {SAVE_AS})", "excel"):
        import openpyxl

    with open_seekable(path) as stream:
        try:
            # Values as the program that saved the file computed them, one row in memory at a time.
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            with closing(book):
                yield from _rows(path, choose, _sheet(book, sheet, path))
        except GenpoolError:
            raise
        except Exception as error:  # the library raises whatever a damaged part leads to
            text = str(error) or type(error).__name__
            problem = f"is not an Excel file that can be read: {text}; {SAVE_AS}"
            raise DataError(problem, path) from None


def _sheet(book: Any, name: str | None, path: Path) -> Any:
    if name is None:
        return book.worksheets[0]
    if name not in book.sheetnames:
        raise DataError(unknown_name("sheet", name, book.sheetnames), path)
    return book[name]


def _rows(path: Path, choose: Choose, sheet: Any) -> Iterator[Record]:
    header: list[str] = []
    empty_rows: list[Record] = []
    for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
        is_empty = all(cell is None for cell in cells)
        if not header:
            if not is_empty:
                header = _header(cells)
                choose([name for name in header if name], path, number)
            continue
        # Rows may end early: cells that were never filled are not in the file.
        values = dict(zip_longest(header, cells[: len(header)]))
        record = Record(path, number, values)
        if is_empty:
            empty_rows.append(record)
            continue
        yield from empty_rows
        empty_rows.clear()
        yield record
    if not header:
        raise DataError("is empty; expected a first row with the names of the columns", path)


def _header(cells: Sequence[object]) -> list[str]:
    return ["" if cell is None else str(cell).strip() for cell in cells]
