"""The files of a data set: found, opened at any place, and read as text in their encoding."""

from __future__ import annotations

import codecs
import io
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from genpool.data.rows import BadRow
from genpool.disk.files import (
    COMPRESSED,
    MAX_LINE_BYTES,
    SAVE_AS_UTF8,
    RawLine,
    open_bytes,
    raw_lines,
)
from genpool.errors import ConfigError, DataError

_MAX_NAMES = 12
#: encodings in which a line end takes several bytes, so that lines are found after decoding
_WIDE = re.compile(r"utf_?(16|32)")
_SAMPLE_CHARACTERS = 30
#: half-width katakana: what Chinese text looks like in Shift JIS
_HALF_WIDTH = re.compile("[\uff61-\uff9f]")


# --- Finding files -------------------------------------------------------------------------------


def list_names(folder: Path) -> str:
    """Returns the names in a folder for an error message, only some of them if there are many."""
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

    `names` has the file names of each split, the preferred one first. A file may be compressed;
    the plain file is preferred. Raises DataError if none of the files is there.
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


# --- Encodings -----------------------------------------------------------------------------------


class TextEncoding:
    """How the bytes of a file become lines of text.

    `name` is a text encoding of Python, such as "cp1252" or "utf-16". None is UTF-8, and lines that
    are something else are reported with a guess of what they are. Where the encoding is an option
    of the user, messages advise to name it.
    """

    def __init__(self, name: str | None = None, is_option: bool = True) -> None:
        try:
            "a".encode(name or "utf-8")  # refuses codecs that are no text encodings, like base64
            codec = codecs.lookup(name or "utf-8").name.replace("-", "_")
        except (LookupError, ValueError):
            raise ConfigError(
                f"encoding is {name!r}, which Python does not know; expected a name such as "
                "utf-8, utf-16, cp1252 (Western European), cp1251 (Cyrillic), gb18030 (Chinese) or "
                "shift_jis (Japanese)"
            ) from None
        self._name, self._is_option = name, is_option
        #: whether a line end takes several bytes, so that the file has to be read from its start
        self.is_wide = bool(_WIDE.match(codec))
        self._codec = "utf-8" if self.is_wide else codec
        #: what to do about the first line that was not UTF-8; None if all lines were
        self.advice: str | None = None

    def lines(self, path: Path) -> Iterator[RawLine]:
        """Yields the lines of a file, which `decode` takes."""
        if self._name is not None and self.is_wide:
            return _recoded_lines(path, self._name)
        return raw_lines(path, _name_it("utf-16") if self._is_option else SAVE_AS_UTF8)

    def decode(self, line: RawLine) -> str:
        """Returns a line as text; raises BadRow if it is not in this encoding."""
        try:
            return line.data.decode(self._codec)
        except UnicodeDecodeError as error:
            name = self._name or "UTF-8"
            byte = f"byte 0x{line.data[error.start]:02x} at offset {line.offset + error.start}"
            problem = f"is not {name}: {byte} of the file, byte {error.start + 1} of the line"
            fix = SAVE_AS_UTF8
            if self._name is not None:
                fix = "name another encoding"
            elif self._is_option:
                guess = guess_encoding(line.data)
                before, after = line.data[: error.start], line.data[error.start :]
                word = before.split(b" ")[-1] + after.split(b" ")[0]
                sample = word.decode(guess, "replace")[:_SAMPLE_CHARACTERS]
                fix = f"it may be {guess}, in which this is {sample!r}: {_name_it(guess)}"
                self.advice = self.advice or f"line {line.number} is not UTF-8; {fix}"
            raise BadRow(f"bad {name}", f"{problem}; {fix}") from None


#: of files whose encoding is known, the official ones
UTF8_TEXT = TextEncoding(is_option=False)


def guess_encoding(data: bytes) -> str:
    """Returns the most likely encoding of text that is not UTF-8, from a few of its words.

    Western text has single accented characters, or words that are mostly ASCII. Other alphabets
    have runs of bytes above 127, and their encodings are told apart by what decodes.
    """
    runs = re.findall(rb"[\x80-\xff]+", data)
    words = re.findall(rb"[A-Za-z]*[\x80-\xff][A-Za-z\x80-\xff]*", data)
    high, letters = sum(map(len, runs)), sum(map(len, words))
    if high < 2 * len(runs) or letters > 2 * high:
        return "cp1252" if _decodes(data, "cp1252") else "latin-1"
    japanese = _decodes(data, "shift_jis")
    if japanese is not None and not _HALF_WIDTH.search(japanese):
        return "shift_jis"
    return "gb18030" if _decodes(data, "gb18030") else "cp1251"


def _decodes(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _name_it(encoding: str) -> str:
    return (
        f"name its encoding: encoding={encoding!r} (command line: --encoding {encoding}), or "
        f"{SAVE_AS_UTF8}"
    )


def _recoded_lines(path: Path, encoding: str) -> Iterator[RawLine]:
    """Yields the lines of a UTF-16 or UTF-32 file as UTF-8."""
    number = 0
    with open_bytes(path) as stream:
        text = io.TextIOWrapper(stream, encoding, newline="\n")
        while True:
            try:
                line = text.readline(MAX_LINE_BYTES + 1)
            except UnicodeError as error:
                problem = f"is not {encoding}: {error}; name another encoding, or {SAVE_AS_UTF8}"
                raise DataError(problem, path, number + 1) from None
            if not line:
                return
            number += 1
            if len(line) > MAX_LINE_BYTES:
                problem = f"is longer than {MAX_LINE_BYTES:,} bytes; expected text, line by line"
                raise DataError(problem, path, number)
            # A mark at the start of the file is part of the encoding, not of the text.
            line = line.removeprefix("\ufeff") if number == 1 else line
            yield RawLine(number, 0, line.rstrip("\r\n").encode())
