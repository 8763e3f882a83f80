"""Text encodings of tables: UTF-8 unless another one is named, and a guess for error messages."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path

from genpool.data.rows import BadRow, decode_line, locate_bad_byte
from genpool.disk.files import MAX_LINE_BYTES, SAVE_AS_UTF8, RawLine, open_bytes, raw_lines
from genpool.errors import ConfigError, DataError

UTF8 = "utf-8"
#: encodings in which a line end takes several bytes, so that lines are found after decoding
_WIDE = re.compile(r"utf_?(16|32)")
_BLOCK_BYTES = 1 << 20
_SAMPLE_CHARACTERS = 30
#: half-width katakana: what Chinese text looks like in Shift JIS
_HALF_WIDTH = re.compile("[\uff61-\uff9f]")


class Encoding:
    """How the bytes of a file become lines of text: here, as UTF-8."""

    def lines(self, path: Path) -> Iterator[RawLine]:
        """Yields the lines of a file, which `decode` takes.

        Raises:
            DataError: the file cannot be read, or is not text in this encoding.
        """
        return raw_lines(path)

    def decode(self, line: RawLine) -> str:
        """Returns a line as text; raises BadRow if it is not in this encoding."""
        return decode_line(line)


class TableEncoding(Encoding):
    """The encoding of a table, which its user can name.

    Args:
        name: a text encoding of Python, such as "cp1252" or "utf-16". None (default) is UTF-8, and
            lines that are something else are reported with a guess of what they are.

    Raises:
        ConfigError: Python has no such text encoding.
    """

    def __init__(self, name: str | None = None) -> None:
        codec = _codec_name(name or UTF8)
        if codec is None:
            raise ConfigError(
                f"encoding is {name!r}, which Python does not know; expected a name such as "
                "utf-8, utf-16, cp1252 (Western European), cp1251 (Cyrillic), gb18030 (Chinese) or "
                "shift_jis (Japanese)"
            )
        self._name = name
        #: whether a line end takes several bytes, so that the file has to be read from its start
        self.is_wide = bool(_WIDE.match(codec))
        self._codec = UTF8 if self.is_wide else codec
        #: what to do about the first line that was not UTF-8; None if all lines were
        self.advice: str | None = None

    def lines(self, path: Path) -> Iterator[RawLine]:
        if self._name is not None and self.is_wide:
            return _recoded_lines(path, self._name)
        return raw_lines(path, _name_it("utf-16"))

    def decode(self, line: RawLine) -> str:
        try:
            return line.data.decode(self._codec)
        except UnicodeDecodeError as error:
            name = self._name or "UTF-8"
            problem = f"is not {name}: {locate_bad_byte(line, error)}"
            if self._name is not None:
                raise BadRow(f"bad {name}", f"{problem}; name another encoding") from None
            advice = _guess_at(line.data, error.start)
            self.advice = self.advice or f"line {line.number} is not UTF-8; {advice}"
            raise BadRow(f"bad {name}", f"{problem}; {advice}") from None


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


def _guess_at(line: bytes, start: int) -> str:
    """Returns advice for a line that is not UTF-8 from a byte on: the encoding that it may be."""
    guess = guess_encoding(line)
    word = line[:start].split(b" ")[-1] + line[start:].split(b" ")[0]
    sample = word.decode(guess, "replace")[:_SAMPLE_CHARACTERS]
    return f"it may be {guess}, in which this is {sample!r}: {_name_it(guess)}"


def _name_it(encoding: str) -> str:
    return (
        f"name its encoding: encoding={encoding!r} (command line: --encoding {encoding}), or "
        f"{SAVE_AS_UTF8}"
    )


def _codec_name(name: str) -> str | None:
    """Returns Python's name of a text encoding; None if there is none."""
    try:
        "a".encode(name)  # refuses codecs that are no text encodings, such as base64
        return codecs.lookup(name).name.replace("-", "_")
    except (LookupError, ValueError):
        return None


def _recoded_lines(path: Path, encoding: str) -> Iterator[RawLine]:
    """Yields the lines of a file as UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)()
    pending, number = "", 0
    with open_bytes(path) as stream:
        while True:
            block = stream.read(_BLOCK_BYTES)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeError as error:
                problem = f"is not {encoding}: {error}; name another encoding, or {SAVE_AS_UTF8}"
                raise DataError(problem, path, number + 1) from None
            *lines, pending = (pending + text).split("\n")
            if not block and pending:
                lines.append(pending)
            for line in lines:
                number += 1
                # A mark at the start of the file is part of the encoding, not of the text.
                line = line.removeprefix("\ufeff") if number == 1 else line
                yield RawLine(number, 0, line.rstrip("\r").encode(UTF8))
            if not block:
                return
            if len(pending) > MAX_LINE_BYTES:
                problem = f"is longer than {MAX_LINE_BYTES:,} bytes; expected text, line by line"
                raise DataError(problem, path, number + 1)
