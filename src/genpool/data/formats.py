"""The rows of a TSV, CSV or JSON Lines file, as records.

Each function streams one file and calls `choose(names, path, line)` once, as soon as it knows the
names of the columns: it returns those that will be used, or raises DataError for one that is
missing. A row that cannot be read becomes a record that holds a BadRow, and reading goes on. The
argument `lines` has the lines to read; None, the default, is all of the file.
"""

from __future__ import annotations

import csv
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path

from genpool.data.rows import BadRow, Record
from genpool.data.text_files import UTF8_TEXT, TextEncoding
from genpool.disk.files import RawLine
from genpool.errors import DataError

Choose = Callable[[Sequence[str], Path, int | None], Sequence[str]]
Lines = Iterable[RawLine] | None

#: longest field of a CSV file; a quote that is never closed is noticed here, not at the file's end
MAX_FIELD_CHARACTERS = 2**24
#: lines of a JSON Lines file whose fields together are its columns
JSON_HEADER_LINES = 100
#: what may separate the fields of a CSV file, the usual one first
DELIMITERS = ",;\t|"
_field_limit_lock = threading.Lock()


def text_records(
    path: Path,
    choose: Choose,
    encoding: TextEncoding = UTF8_TEXT,
    delimiter: str | None = "\t",
    quotes: bool = False,
    short_rows: bool = False,
    lines: Lines = None,
) -> Iterator[Record]:
    """Yields rows with the names of the header, which is the first line that is not empty.

    With `quotes`, fields may be quoted as in RFC 4180 and then hold delimiters and line breaks, the
    line of a record is the one it begins on, and a delimiter of None is the one that the header has
    most often. Without, a quote is a character like any other. With `short_rows`, empty fields at
    the end of a row may be left out with their delimiters, as long as the columns that are used are
    there. Empty lines are skipped, except between the rows of a table with one column, where they
    are empty cells.
    """
    source = iter(lines or encoding.lines(path))
    rows = (_csv_rows if quotes else _plain_rows)(source, encoding, delimiter)
    header: list[str] = []
    empty_lines: list[RawLine] = []
    min_fields = 0
    for line, fields in rows:
        if not fields:
            empty_lines.append(line)
            continue
        if len(header) == 1:
            for empty in empty_lines:
                yield Record(path, empty.number, {header[0]: ""}, empty.offset)
        empty_lines.clear()
        if isinstance(fields, BadRow):
            if not header:
                raise DataError(fields.problem, path, line.number)
            yield Record(path, line.number, fields, line.offset)
        elif not header:
            header = fields
            used = choose(header, path, line.number)
            min_fields = len(header)
            if short_rows:
                min_fields = 1 + max((header.index(name) for name in used), default=0)
        else:
            values: Mapping[str, object] | BadRow = dict(zip(header, fields, strict=False))
            if not min_fields <= len(fields) <= len(header):
                problem = f"has {len(fields)} fields; expected {len(header)}, as in the header"
                values = BadRow("wrong number of fields", problem)
            yield Record(path, line.number, values, line.offset)
    if not header:
        raise DataError("is empty; expected a header line with the names of the columns", path)


def _plain_rows(
    lines: Iterator[RawLine], encoding: TextEncoding, delimiter: str | None
) -> Iterator[tuple[RawLine, list[str] | BadRow]]:
    """Yields the fields of each line without quoting; an empty line has no fields."""
    for line in lines:
        try:
            yield line, encoding.decode(line).split(delimiter) if line.data else []
        except BadRow as bad:
            yield line, bad


def _csv_rows(
    lines: Iterator[RawLine], encoding: TextEncoding, delimiter: str | None
) -> Iterator[tuple[RawLine, list[str] | BadRow]]:
    """Yields the fields of each row and the line that it begins on; an empty line has no fields."""
    damage: list[BadRow] = []
    taken: list[RawLine] = []  # the lines of the row that is parsed

    def text_lines() -> Iterator[str]:
        for line in chain(first_lines, lines):
            taken.append(line)
            try:
                yield encoding.decode(line) + "\n"
            except BadRow as bad:
                # The parser still needs the line, to know where its record ends.
                damage.append(bad)
                yield line.data.decode("utf-8", "replace") + "\n"

    first_lines: list[RawLine] = []
    for line in lines:  # up to the header
        first_lines.append(line)
        if line.data:
            # Spreadsheet programs write semicolons in countries whose decimal mark is the comma.
            with suppress(BadRow):  # which is reported where the line is parsed
                unquoted = re.sub(r'"[^"]*"', "", encoding.decode(line))
                # Of equal counts the first, the comma.
                delimiter = delimiter or max(DELIMITERS, key=unquoted.count)
            break
    rows = csv.reader(text_lines(), delimiter=delimiter or ",", strict=True)
    while True:
        taken.clear()
        damage.clear()
        fields: list[str] | BadRow | None
        try:
            fields = _next_row(rows)
        except csv.Error as error:
            if "field limit" in str(error):
                problem = f"a field has more than {MAX_FIELD_CHARACTERS:,} characters"
                fields = BadRow("field too long", f"{problem}; is a quote never closed?")
            else:
                problem = f"quotes do not match ({error}); is a quote never closed, or not doubled?"
                fields = BadRow("bad quoting", problem)
        if fields is None:
            return
        yield taken[0], damage[0] if damage else fields


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


def json_records(
    path: Path, choose: Choose, encoding: TextEncoding = UTF8_TEXT, lines: Lines = None
) -> Iterator[Record]:
    """Yields one JSON object per line; the fields of the first lines together are the columns."""
    records = (
        Record(path, line.number, json_values(line, encoding), line.offset)
        for line in lines or encoding.lines(path)
        if line.data.strip()
    )
    first = list(islice(records, JSON_HEADER_LINES))
    # One line may lack a field that the next ones have: then that line is bad, not the file.
    readable = {
        record.line: record.values for record in first if not isinstance(record.values, BadRow)
    }
    if readable:
        names = dict.fromkeys(name for values in readable.values() for name in values)
        choose(list(names), path, min(readable))
    yield from first
    for record in records:
        if not readable and not isinstance(record.values, BadRow):
            choose(list(record.values), path, record.line)
            readable[record.line] = record.values
        yield record


def json_values(line: RawLine, encoding: TextEncoding = UTF8_TEXT) -> Mapping[str, object] | BadRow:
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
