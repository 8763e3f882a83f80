"""Text files and tables of a data set: found by their names, and decoded."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from genpool.data.reader import BadRow
from genpool.disk import files as disk
from genpool.disk.files import COMPRESSED, SAVE_AS_UTF8, RawLine, uncompressed_name
from genpool.errors import ConfigError, DataError

TABLE_SUFFIXES = (".tsv", ".csv", ".jsonl", ".ndjson", ".parquet", ".xlsx", ".xlsm")
#: spreadsheets that are not read
_OTHER_SPREADSHEETS = (".xls", ".xlsb", ".ods", ".numbers")
SAVE_AS = "open it in a spreadsheet program and save it as .xlsx or as .csv"
#: names that a dev set may have instead
_OTHER_NAMES = {"validation": "dev", "valid": "dev", "val": "dev"}
#: encodings in which a line end takes several bytes, so that lines are found after decoding
_WIDE = re.compile(r"utf_?(16|32)")


def list_names(folder: Path) -> str:
    """Returns the names in a folder for an error message, 12 at most."""
    names = sorted(entry.name for entry in folder.iterdir())
    rest = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return (", ".join(names[:12]) or "nothing") + rest


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


def table_format(path: Path) -> str | None:
    """Returns the suffix of a table without that of its compression; None if it is no table."""
    suffix = Path(uncompressed_name(path)).suffix.lower()
    return suffix if suffix in TABLE_SUFFIXES else None


def require_table(file: Path) -> Path:
    """Returns a file; raises DataError if it is not a table by its name."""
    if table_format(file) is not None:
        return file
    if Path(uncompressed_name(file)).suffix.lower() in _OTHER_SPREADSHEETS:
        raise DataError(f"is a spreadsheet of a kind that is not read; {SAVE_AS}", file)
    kinds = f"{', '.join(TABLE_SUFFIXES)} (or these with {', '.join(COMPRESSED)})"
    hint = "If it is one, rename it; lines of text have no columns to name"
    raise DataError(f"is not a table by its name; expected {kinds}. {hint}", file)


def tables_of_folder(folder: Path) -> dict[str, Path]:
    """Returns the tables of a folder by the names of their splits; raises DataError for none."""
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        is_no_data = path.name.startswith((".", "~$"))  # hidden, or the lock of an open Excel file
        if is_no_data or not path.is_file() or table_format(path) is None:
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
        return disk.raw_lines(path, _how_to_read("utf-16"))

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
                sample = word.decode(guess, "replace")[:30]
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
            # Chinese text in Shift JIS looks like half-width katakana.
            if encoding != "shift_jis" or not re.search("[\uff61-\uff9f]", text):
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
    with disk.open_bytes(path) as stream, io.TextIOWrapper(stream, encoding, newline="\n") as text:
        try:
            for number, line in enumerate(text, start=1):
                # A mark at the start of the file is part of the encoding, not of the text.
                line = line.removeprefix("\ufeff") if number == 1 else line
                yield RawLine(number, 0, line.rstrip("\r\n").encode())
        except UnicodeError as error:
            problem = f"is not {encoding}: {error}; name another encoding, or {SAVE_AS_UTF8}"
            raise DataError(problem, path, number + 1) from None


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
