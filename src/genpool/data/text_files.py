"""Text files of a data set: found, decoded, and read as rows of TSV, CSV or JSON Lines.

`text_records` and `json_records` call `choose(names, path, line)` once, when they know the names of
the columns: it returns those that will be used, or raises DataError for one that is missing.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path

from genpool.data.reader import BadRow, Record
from genpool.disk.files import COMPRESSED, SAVE_AS_UTF8, RawLine, open_bytes, raw_lines
from genpool.errors import ConfigError, DataError

Choose = Callable[[Sequence[str], Path, int | None], Sequence[str]]
#: the lines of a file to read; None: all
Lines = Iterable[RawLine] | None

#: names of a folder that a message lists
_MAX_NAMES = 12
#: encodings in which a line end takes several bytes, so that lines are found after decoding
_WIDE = re.compile(r"utf_?(16|32)")
_SAMPLE_CHARACTERS = 30
#: half-width katakana: what Chinese text looks like in Shift JIS
_HALF_WIDTH = re.compile("[\uff61-\uff9f]")
#: longest field of a CSV file; a quote that is never closed is noticed here, not at the file's end
MAX_FIELD_CHARACTERS = 2**24
#: lines of a JSON Lines file whose fields together are its columns
JSON_HEADER_LINES = 100
#: what may separate the fields of a CSV file, the usual one first
DELIMITERS = ",;\t|"


def list_names(folder: Path) -> str:
    """Returns the names in a folder for an error message, only some of many."""
    names = sorted(entry.name for entry in folder.iterdir())
    rest = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return (", ".join(names[:_MAX_NAMES]) or "nothing") + rest


def require_existing(path: str | Path) -> Path:
    """Returns the path; raises DataError if nothing is there, listing the nearest folder."""
    path = Path(path)
    try:
        if path.exists():
            return path
        parent = next(folder for folder in path.absolute().parents if folder.is_dir())
    except OSError as error:  # a name that is too long, or a folder that may not be entered
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None
    raise DataError(f"there is no such file or folder; {parent} holds: {list_names(parent)}", path)


def find_split_files(path: str | Path, names: Mapping[str, Sequence[str]]) -> dict[str, Path]:
    """Returns the file of each split that is present in a folder, or that the path itself is.

    `names` has the file names of each split, the preferred one first; plain before compressed.
    """
    path = require_existing(path)
    folder, file = (path, None) if path.is_dir() else (path.parent, path)
    files: dict[str, Path] = {}
    for split, choices in names.items():
        for candidate in (folder / (name + end) for name in choices for end in ("", *COMPRESSED)):
            if candidate.is_file() and file in (None, candidate):
                files.setdefault(split, candidate)
    if not files:
        expected = ", ".join(name for choices in names.values() for name in choices)
        instead = f"it holds: {list_names(path)}" if file is None else "this file is none of them"
        ends = ", ".join(COMPRESSED)
        raise DataError(f"looked for {expected} (or these with {ends}), but {instead}", path)
    return files


class TextEncoding:
    """A text encoding of Python, such as "cp1252"; None is UTF-8, with a guess where it is not."""

    def __init__(self, name: str | None = None) -> None:
        try:
            "a".encode(name or "utf-8")  # refuses codecs that are no text encodings, like base64
            codec = codecs.lookup(name or "utf-8").name.replace("-", "_")
        except (LookupError, ValueError):
            raise ConfigError(
                f"encoding is {name!r}, which Python does not know; expected a name such as "
                "utf-8, utf-16, cp1252 (Western European), cp1251 (Cyrillic), gb18030 (Chinese) or "
                "shift_jis (Japanese)"
            ) from None
        self._name = name
        #: whether a line end takes several bytes, so that the file has to be read from its start
        self.is_wide = bool(_WIDE.match(codec))
        self._codec = "utf-8" if self.is_wide else codec

    def lines(self, path: Path) -> Iterator[RawLine]:
        """Yields the lines of a file, which `decode` takes."""
        if self._name is not None and self.is_wide:
            return _recoded_lines(path, self._name)
        return raw_lines(path, _how_to_read("utf-16"))

    def decode(self, line: RawLine) -> str | BadRow:
        """Returns a line as text, or what is wrong if it is not in this encoding."""
        try:
            return line.data.decode(self._codec)
        except UnicodeDecodeError as error:
            name = self._name or "UTF-8"
            byte = f"byte 0x{line.data[error.start]:02x} at offset {line.offset + error.start}"
            fix = "name another encoding"
            if self._name is None:
                guess = guess_encoding(line.data)
                before, after = line.data[: error.start], line.data[error.start :]
                word = before.split(b" ")[-1] + after.split(b" ")[0]
                sample = word.decode(guess, "replace")[:_SAMPLE_CHARACTERS]
                fix = f"it may be {guess}, in which this is {sample!r}: {_how_to_read(guess)}"
            where = f"{byte} of the file, byte {error.start + 1} of the line"
            return BadRow(f"bad {name}", f"is not {name}: {where}; {fix}")


UTF8_TEXT = TextEncoding()


def guess_encoding(data: bytes) -> str:
    """Returns the most likely encoding of a few words that are not UTF-8."""
    runs = re.findall(rb"[\x80-\xff]+", data)
    words = re.findall(rb"[A-Za-z]*[\x80-\xff][A-Za-z\x80-\xff]*", data)
    high, letters = sum(map(len, runs)), sum(map(len, words))
    # Western text has single accented characters, or words that are mostly ASCII; other alphabets
    # have runs of bytes above 127, and their encodings are told apart by what decodes.
    is_western = high < 2 * len(runs) or letters > 2 * high
    for encoding in ("cp1252",) if is_western else ("shift_jis", "gb18030"):
        with suppress(UnicodeDecodeError):
            text = data.decode(encoding)
            if encoding != "shift_jis" or not _HALF_WIDTH.search(text):
                return encoding
    return "latin-1" if is_western else "cp1251"


def _how_to_read(encoding: str) -> str:
    return (
        f"{SAVE_AS_UTF8}, or name the encoding of a table: encoding={encoding!r} (command line: "
        f"--encoding {encoding})"
    )


def _recoded_lines(path: Path, encoding: str) -> Iterator[RawLine]:
    """Yields the lines of a UTF-16 or UTF-32 file as UTF-8."""
    number = 0
    with open_bytes(path) as stream, io.TextIOWrapper(stream, encoding, newline="\n") as text:
        try:
            for number, line in enumerate(text, start=1):
                # A mark at the start of the file is part of the encoding, not of the text.
                line = line.removeprefix("\ufeff") if number == 1 else line
                yield RawLine(number, 0, line.rstrip("\r\n").encode())
        except UnicodeError as error:
            problem = f"is not {encoding}: {error}; name another encoding, or {SAVE_AS_UTF8}"
            raise DataError(problem, path, number + 1) from None


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

    With `short_rows`, the fields after the columns that are used may be left out. Empty lines are
    skipped, except between the rows of a table with one column, where they are empty cells.
    """
    header: list[str] = []
    empty_lines: list[RawLine] = []
    min_fields = 0
    for line, fields in _text_rows(
        iter(lines or encoding.lines(path)), encoding, delimiter, quotes
    ):
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


def _text_rows(
    lines: Iterator[RawLine], encoding: TextEncoding, delimiter: str | None, quotes: bool
) -> Iterator[tuple[RawLine, list[str] | BadRow]]:
    """Yields the line that a row begins on, and its fields; an empty line has none.

    With `quotes`, fields may be quoted as in RFC 4180 and then hold delimiters and line breaks. A
    delimiter of None is the one that the header has most often.
    """
    csv.field_size_limit(MAX_FIELD_CHARACTERS)  # of the process; 131,072 unless it is set
    for line in lines:
        if not line.data:
            yield line, []
        elif quotes:
            if delimiter is None:
                # Spreadsheet programs write semicolons where the decimal mark is the comma.
                unquoted = re.sub(r'"[^"]*"', "", str(encoding.decode(line)))
                delimiter = max(DELIMITERS, key=unquoted.count)  # of equal counts the comma
            yield line, _csv_fields(chain([line], lines), encoding, delimiter)
        else:
            text = encoding.decode(line)
            yield line, text if isinstance(text, BadRow) else text.split(delimiter)


def _csv_fields(
    lines: Iterator[RawLine], encoding: TextEncoding, delimiter: str
) -> list[str] | BadRow:
    """Returns the fields of one row, and takes its lines."""
    damage: list[BadRow] = []

    def texts() -> Iterator[str]:
        for line in lines:
            text = encoding.decode(line)
            if isinstance(text, BadRow):
                # The parser still needs the line, to know where its record ends.
                damage.append(text)
                text = line.data.decode("utf-8", "replace")
            yield text + "\n"

    fields: list[str] | BadRow
    try:
        fields = next(csv.reader(texts(), delimiter=delimiter, strict=True))
    except csv.Error as error:
        reason = "bad quoting"
        problem = f"quotes do not match ({error}); is a quote never closed, or not doubled?"
        if "field limit" in str(error):
            reason = "field too long"
            problem = f"a field has more than {MAX_FIELD_CHARACTERS:,} characters"
            problem += "; is a quote never closed?"
        fields = BadRow(reason, problem)
    return damage[0] if damage else fields


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
    readable = {row.line: row.values for row in first if not isinstance(row.values, BadRow)}
    if readable:
        names = dict.fromkeys(name for values in readable.values() for name in values)
        choose(list(names), path, min(readable))
    for record in chain(first, records):
        if not readable and not isinstance(record.values, BadRow):
            readable[record.line] = record.values
            choose(list(record.values), path, record.line)
        yield record


def json_values(line: RawLine, encoding: TextEncoding = UTF8_TEXT) -> Mapping[str, object] | BadRow:
    """Returns the JSON object of a line, or what is wrong with it."""
    text = encoding.decode(line)
    if isinstance(text, BadRow):
        return text
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        return BadRow("invalid JSON", f"is not JSON: {error.msg} at column {error.colno}")
    except (ValueError, RecursionError) as error:
        return BadRow("invalid JSON", f"is not JSON that can be read: {error}")
    if isinstance(value, dict):
        return value
    kind = type(value).__name__
    return BadRow("invalid JSON", f"holds a JSON {kind}; expected one object per line, {{...}}")
