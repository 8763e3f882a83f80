"""Text files: lines of plain and compressed files, and Markdown tables for those that are written.

Lines are physical lines of the decompressed file, counted from 1 and ended by a line feed only:
a form feed or U+2028 inside a sentence is part of it (`str.splitlines` would end the line there).
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from genpool.errors import DataError

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
COMPRESSED = (*_OPENERS, ".zip")
# Everything the decompressors raise for a file that is damaged, truncated or locked.
_DAMAGE = (EOFError, OSError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
#: how to fix a file of another encoding, for messages
SAVE_AS_UTF8 = "save it as UTF-8"
#: longest line that is read: the next line end may be many gigabytes away in a file that is no text
MAX_LINE_BYTES = 2**30
#: a compressed file may expand to this, or to MAX_EXPANSION times its own size if that is more;
#: text compresses 3 to 50 times, and a few kilobytes can hold many gigabytes of zeros
FREE_BYTES, MAX_EXPANSION = 64 * 2**20, 200
BUFFER_BYTES = 2**16
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

#: for any name: `Path.is_file` raises OSError where a name is too long, as a sentence may be
is_file, is_folder = os.path.isfile, os.path.isdir


class RawLine(NamedTuple):
    """A line as bytes, without its line end, and the offset of its first byte when decompressed."""

    number: int
    offset: int
    data: bytes


def uncompressed_name(path: Path) -> str:
    """Returns the name of a file without its compression suffix: train.tsv of train.tsv.xz."""
    return path.stem if path.suffix.lower() in COMPRESSED else path.name


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Opens a file, decompressed by its suffix; DataError if it is missing or damaged."""
    try:
        with ExitStack() as stack:
            yield _open(path, stack)
    except FileNotFoundError:
        raise DataError("there is no such file", path) from None
    except _DAMAGE as error:
        text = str(error) or type(error).__name__
        raise DataError(f"cannot be read, it may be damaged or truncated: {text}", path) from error


def raw_lines(
    path: Path, fix: str = SAVE_AS_UTF8, first: int = 1, offset: int = 0
) -> Iterator[RawLine]:
    """Yields the lines of a file from line `first`, which is at `offset`; one is in memory.

    DataError if it is UTF-16 text; `fix` is what it advises.
    """
    with open_bytes(path) as stream:
        if offset:
            stream.seek(offset)
        yield from split_lines(stream, path, fix, first, offset)


def split_lines(
    stream: IO[bytes], path: Path | str, fix: str = SAVE_AS_UTF8, first: int = 1, offset: int = 0
) -> Iterator[RawLine]:
    """Yields the lines of an open file, as `raw_lines` does; the path is for messages."""
    lines = iter(partial(stream.readline, MAX_LINE_BYTES + 1), b"")
    for number, data in enumerate(lines, start=first):
        length = len(data)
        if length > MAX_LINE_BYTES:
            problem = f"is longer than {MAX_LINE_BYTES:,} bytes; expected text, line by line"
            raise DataError(problem, path, number)
        if number == 1:
            # Without a byte-order mark, these are encodings in which ASCII is full of NUL bytes.
            if data.startswith(_UTF16) or data.count(0) >= max(2, length // 4):
                raise DataError(f"is UTF-16 text; {fix}", path)
            if data.startswith(codecs.BOM_UTF8):
                offset, data = len(codecs.BOM_UTF8), data.removeprefix(codecs.BOM_UTF8)
                length -= offset
        yield RawLine(number, offset, data.rstrip(b"\r\n"))
        offset += length


def decode_utf8(data: bytes, path: Path | str, number: int) -> str:
    """Returns a line as text; raises DataError with its number if it is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = (
            f"is not UTF-8 text: byte {data[error.start]:#04x}, {error.reason}; {SAVE_AS_UTF8}"
        )
        raise DataError(problem, path, number) from None


def _open(path: Path, stack: ExitStack) -> IO[bytes]:
    suffix = path.suffix.lower()
    if suffix not in COMPRESSED:
        return stack.enter_context(path.open("rb"))
    if suffix == ".zip":
        stream = _open_member(path, stack)
    else:
        if path.is_file() and not path.stat().st_size:
            raise EOFError("it is empty")  # which gzip alone takes for no data
        stream = stack.enter_context(_OPENERS[suffix](path, "rb"))
    return io.BufferedReader(_LimitedStream(stream, path), BUFFER_BYTES)


def _open_member(path: Path, stack: ExitStack) -> IO[bytes]:
    """Opens the only file of an archive."""
    try:
        archive = stack.enter_context(zipfile.ZipFile(path))
        # macOS adds folders and hidden files to every archive.
        added = re.compile(r"^$|^__MACOSX/|/$|(^|/)\.[^/]*$")
        members = [name for name in archive.namelist() if not added.search(name)]
        if len(members) != 1:
            raise DataError(f"contains {len(members)} files; expected one: unpack it first", path)
        return stack.enter_context(archive.open(members[0]))
    except UnicodeDecodeError as error:  # of a name
        raise zipfile.BadZipFile(str(error)) from error


class _LimitedStream(io.RawIOBase):
    """The decompressed bytes of a file, up to a limit that follows its size."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream, self._path, self._count = stream, path, 0
        self._allowed = max(FREE_BYTES, MAX_EXPANSION * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        self._count += len(data)
        if self._count > self._allowed:
            raise DataError(
                f"expands to more than {self._allowed:,} bytes, too many for a compressed file of "
                "its size: it may have been made to exhaust memory. If you trust it, decompress it "
                "first",
                self._path,
            )
        buffer[: len(data)] = data
        return len(data)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]], text: int = 1) -> str:
    """Returns a Markdown table; the first `text` columns are aligned to the left, others right."""

    def line(cells: Sequence[object]) -> str:
        escaped = (" ".join(str(cell).replace("|", "\\|").split()) for cell in cells)
        return f"| {' | '.join(escaped)} |"

    rule = ["---" if column < text else "---:" for column in range(len(header))]
    return "\n".join([line(header), "|" + "|".join(rule) + "|", *map(line, rows)])


def percent(share: float) -> str:
    """Returns 0.8231 as `82.31 %`."""
    return f"{100 * share:.2f} %"


def percent_interval(interval: tuple[float, float]) -> str:
    """Returns (0.8153, 0.8306) as `81.53 to 83.06 %`; "to", because a limit may be negative."""
    low, high = interval
    return f"{100 * low:.2f} to {percent(high)}"
