"""The rows of a TSV, CSV or JSON Lines file, as records.

Each function streams one file and asks `choose(names, path, line)` once, as soon as it knows the
names of the columns: it returns those that will be used, or raises DataError for one that is
missing. A row that cannot be read becomes a record that holds a BadRow, and reading goes on.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from genpool.data.rows import BadRow, Record, decoded
from genpool.disk.files import RawLine, raw_lines
from genpool.errors import DataError

Choose = Callable[[Sequence[str], Path, int | None], Sequence[str]]


def tsv_records(
    path: Path, choose: Choose, delimiter: str = "\t", short_rows: bool = False
) -> Iterator[Record]:
    """Rows without quoting: a quote is a letter. Lines without anything on them are passed over.

    With `short_rows`, empty fields at the end of a row may be left out with their tabs, as long
    as the columns that are used are there.
    """
    header: list[str] = []
    fewest = 0
    for line in raw_lines(path):
        if not line.data:
            continue
        try:
            fields = decoded(line).split(delimiter)
        except BadRow as bad:
            if not header:
                raise DataError(bad.problem, path, line.number) from None
            yield Record(path, line.number, bad)
            continue
        if not header:
            header = fields
            used = choose(header, path, line.number)
            fewest = len(header)
            if short_rows:
                fewest = 1 + max((header.index(name) for name in used), default=0)
        else:
            yield Record(path, line.number, _named(header, fields, fewest))
    _require_header(header, path)


def csv_records(path: Path, choose: Choose, delimiter: str = ",") -> Iterator[Record]:
    """Rows with quoting as in RFC 4180: a quoted field may hold delimiters, quotes and lines.

    A record's line is the one it begins on.
    """
    damage: list[BadRow] = []

    def text_lines() -> Iterator[str]:
        for line in raw_lines(path):
            try:
                yield decoded(line) + "\n"
            except BadRow as bad:
                # The parser still needs the line, to know where its record ends.
                damage.append(bad)
                yield line.data.decode("utf-8", "replace") + "\n"

    header: list[str] = []
    rows = csv.reader(text_lines(), delimiter=delimiter, strict=True)
    while True:
        start = rows.line_num + 1
        damage.clear()
        values: Mapping[str, object] | BadRow
        try:
            fields = next(rows)
        except StopIteration:
            break
        except csv.Error as error:
            problem = f"quotes do not match ({error}); is a quote never closed, or not doubled?"
            fields, values = [], BadRow("bad quoting", problem)
        else:
            if not fields:
                continue
            values = _named(header or fields, fields, len(header))
        values = damage[0] if damage else values
        if header:
            yield Record(path, start, values)
        elif isinstance(values, BadRow):
            raise DataError(values.problem, path, start)
        else:
            header = fields
            choose(header, path, start)
    _require_header(header, path)


def json_records(path: Path, choose: Choose) -> Iterator[Record]:
    """One JSON object a line; the first one that can be read names the columns."""
    chosen = False
    for line in raw_lines(path):
        if not line.data.strip():
            continue
        values = json_values(line)
        if not chosen and not isinstance(values, BadRow):
            choose(list(values), path, line.number)
            chosen = True
        yield Record(path, line.number, values)


def json_values(line: RawLine) -> Mapping[str, object] | BadRow:
    """The JSON object of a line, or what is wrong with it."""
    try:
        value = json.loads(decoded(line))
    except BadRow as bad:
        return bad
    except json.JSONDecodeError as error:
        return BadRow("invalid JSON", f"is not JSON: {error.msg} at column {error.colno}")
    except (ValueError, RecursionError) as error:
        return BadRow("invalid JSON", f"is not JSON that can be read: {error}")
    if isinstance(value, dict):
        return value
    kind = type(value).__name__
    return BadRow("invalid JSON", f"holds a JSON {kind}; expected one object a line, {{...}}")


def _named(header: list[str], fields: list[str], fewest: int) -> Mapping[str, object] | BadRow:
    if fewest <= len(fields) <= len(header):
        return dict(zip(header, fields, strict=False))
    problem = f"has {len(fields)} fields; expected {len(header)}, as in the header"
    return BadRow("wrong number of fields", problem)


def _require_header(header: list[str], path: Path) -> None:
    if not header:
        raise DataError("is empty; expected a header line with the names of the columns", path)
