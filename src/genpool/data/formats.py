"""The rows of a TSV, CSV or JSON Lines file, as records.

Each function streams one file and calls `choose(names, path, line)` once, as soon as it knows the
names of the columns: it returns those that will be used, or raises DataError for one that is
missing. A row that cannot be read becomes a record that holds a BadRow, and reading goes on.
"""

from __future__ import annotations

import csv
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from genpool.data.encodings import Encoding
from genpool.data.rows import BadRow, Record
from genpool.disk.files import RawLine
from genpool.errors import DataError

Choose = Callable[[Sequence[str], Path, int | None], Sequence[str]]

#: longest field of a CSV file; a quote that is never closed is noticed here, not at the file's end
MAX_FIELD_CHARACTERS = 2**24
#: lines of a JSON Lines file whose fields together are its columns
JSON_HEADER_LINES = 100
#: what may separate the fields of a CSV file, the usual one first
DELIMITERS = ",;\t|"
UTF8_TEXT = Encoding()
_field_limit_lock = threading.Lock()


def tsv_records(
    path: Path,
    choose: Choose,
    delimiter: str = "\t",
    short_rows: bool = False,
    encoding: Encoding = UTF8_TEXT,
) -> Iterator[Record]:
    """Yields rows without quoting: a quote is a character like any other.

    Empty lines are skipped, except between the rows of a table with one column, where they are
    empty cells. With `short_rows`, empty fields at the end of a row may be left out with their
    tabs, as long as the columns that are used are there.
    """
    header: list[str] = []
    empty_lines: list[int] = []
    min_fields = 0
    for line in encoding.lines(path):
        if not line.data:
            empty_lines.append(line.number)
            continue
        yield from _empty_cells(path, header, empty_lines)
        try:
            fields = encoding.decode(line).split(delimiter)
        except BadRow as bad:
            if not header:
                raise DataError(bad.problem, path, line.number) from None
            yield Record(path, line.number, bad)
            continue
        if not header:
            header = fields
            used = choose(header, path, line.number)
            min_fields = len(header)
            if short_rows:
                min_fields = 1 + max((header.index(name) for name in used), default=0)
        else:
            yield Record(path, line.number, _by_name(header, fields, min_fields))
    _require_header(header, path)


def csv_records(
    path: Path,
    choose: Choose,
    delimiter: str | None = None,
    encoding: Encoding = UTF8_TEXT,
) -> Iterator[Record]:
    """Yields rows with quoting as in RFC 4180: quoted fields may hold delimiters and line breaks.

    The line of a record is the one it begins on. Empty lines are skipped as in `tsv_records`. If
    the delimiter is None, it is the one that the header has most often.
    """
    damage: list[BadRow] = []
    taken: list[int] = []  # the lines of the row that is parsed

    def text_lines() -> Iterator[str]:
        for line in encoding.lines(path):
            taken.append(line.number)
            try:
                yield encoding.decode(line) + "\n"
            except BadRow as bad:
                # The parser still needs the line, to know where its record ends.
                damage.append(bad)
                yield line.data.decode("utf-8", "replace") + "\n"

    header: list[str] = []
    empty_lines: list[int] = []
    delimiter = delimiter or find_delimiter(_first_line(path, encoding))
    rows = csv.reader(text_lines(), delimiter=delimiter, strict=True)
    while True:
        taken.clear()
        damage.clear()
        values: Mapping[str, object] | BadRow
        try:
            fields = _next_row(rows)
        except csv.Error as error:
            fields, values = [], _csv_fault(error)
        else:
            if fields is None:
                break
            if not fields:
                empty_lines.append(taken[0])
                continue
            values = _by_name(header or fields, fields, len(header))
        start = taken[0]
        yield from _empty_cells(path, header, empty_lines)
        values = damage[0] if damage else values
        if header:
            yield Record(path, start, values)
        elif isinstance(values, BadRow):
            raise DataError(values.problem, path, start)
        else:
            header = fields
            choose(header, path, start)
    _require_header(header, path)


def find_delimiter(header: str) -> str:
    """Returns the character between the fields of a CSV header: a comma unless another is usual.

    Spreadsheet programs write semicolons in countries whose decimal mark is the comma.
    """
    unquoted = re.sub(r'"[^"]*"', "", header)
    return max(DELIMITERS, key=unquoted.count)  # of equal counts the first, the comma


def _first_line(path: Path, encoding: Encoding) -> str:
    """Returns the first line that is not empty; no text if there is none, or it is unreadable."""
    lines = (line for line in encoding.lines(path) if line.data)
    try:
        return next((encoding.decode(line) for line in lines), "")
    except BadRow:  # which is reported where the file is read
        return ""


def _empty_cells(path: Path, header: list[str], empty_lines: list[int]) -> Iterator[Record]:
    """Yields the empty lines before a row; only with one column are they rows themselves."""
    if len(header) == 1:
        yield from (Record(path, number, {header[0]: ""}) for number in empty_lines)
    empty_lines.clear()


def _next_row(rows: Iterator[list[str]]) -> list[str] | None:
    """Returns the next row of a `csv.reader`, or None at the end."""
    # The limit is one for the whole process, 131,072 by default: it is raised for this row only,
    # and by one thread at a time, so that programs that rely on it are not affected.
    with _field_limit_lock:
        usual = csv.field_size_limit(MAX_FIELD_CHARACTERS)
        try:
            return next(rows, None)
        finally:
            csv.field_size_limit(usual)


def _csv_fault(error: csv.Error) -> BadRow:
    if "field limit" in str(error):
        problem = f"a field has more than {MAX_FIELD_CHARACTERS:,} characters"
        return BadRow("field too long", f"{problem}; is a quote never closed?")
    problem = f"quotes do not match ({error}); is a quote never closed, or not doubled?"
    return BadRow("bad quoting", problem)


def json_records(path: Path, choose: Choose, encoding: Encoding = UTF8_TEXT) -> Iterator[Record]:
    """Yields one JSON object per line; the fields of the first lines together are the columns."""
    records = (
        Record(path, line.number, json_values(line, encoding))
        for line in encoding.lines(path)
        if line.data.strip()
    )
    first = list(islice(records, JSON_HEADER_LINES))
    readable = [record for record in first if not isinstance(record.values, BadRow)]
    if readable:
        # One line may lack a field that the next ones have: then that line is bad, not the file.
        names = dict.fromkeys(name for record in readable for name in _fields(record))
        choose(list(names), path, readable[0].line)
    yield from first
    for record in records:
        if not readable and not isinstance(record.values, BadRow):
            choose(_fields(record), path, record.line)
            readable.append(record)
        yield record


def _fields(record: Record) -> list[str]:
    return [] if isinstance(record.values, BadRow) else list(record.values)


def json_values(line: RawLine, encoding: Encoding = UTF8_TEXT) -> Mapping[str, object] | BadRow:
    """Returns the JSON object of a line, or what is wrong with it."""
    try:
        value = json.loads(encoding.decode(line))
    except BadRow as bad:
        return bad
    except json.JSONDecodeError as error:
        return BadRow("invalid JSON", f"is not JSON: {error.msg} at column {error.colno}")
    except (ValueError, RecursionError) as error:
        return BadRow("invalid JSON", f"is not JSON that can be read: {error}")
    if isinstance(value, dict):
        return value
    kind = type(value).__name__
    return BadRow("invalid JSON", f"holds a JSON {kind}; expected one object per line, {{...}}")


def _by_name(
    header: list[str], fields: list[str], min_fields: int
) -> Mapping[str, object] | BadRow:
    if min_fields <= len(fields) <= len(header):
        return dict(zip(header, fields, strict=False))
    problem = f"has {len(fields)} fields; expected {len(header)}, as in the header"
    return BadRow("wrong number of fields", problem)


def _require_header(header: list[str], path: Path) -> None:
    if not header:
        raise DataError("is empty; expected a header line with the names of the columns", path)
