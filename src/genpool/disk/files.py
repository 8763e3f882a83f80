"""Reading text files, plain or compressed, line by line.

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
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from genpool.errors import ConfigError, DataError

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
#: environment variable that sets another factor; 0 removes the limit
EXPANSION_VARIABLE = "GENPOOL_MAX_EXPANSION"
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
    """Yields the lines of a file, with one in memory at a time; DataError if it is not UTF-8 text.

    It begins with line `first`, whose offset an earlier pass found. `fix` is what the error for
    UTF-16 text advises.
    """
    with open_bytes(path) as stream:
        if offset:
            stream.seek(offset)
        lines = iter(partial(stream.readline, MAX_LINE_BYTES + 1), b"")
        for number, data in enumerate(lines, start=first):
            length = len(data)
            if length > MAX_LINE_BYTES:
                problem = f"is longer than {MAX_LINE_BYTES:,} bytes; expected text, line by line"
                raise DataError(problem, path, number)
            if number == 1:
                refuse_utf16(data, path, fix)
                if data.startswith(codecs.BOM_UTF8):
                    offset, data = len(codecs.BOM_UTF8), data.removeprefix(codecs.BOM_UTF8)
                    length -= offset
            yield RawLine(number, offset, data.rstrip(b"\r\n"))
            offset += length


def refuse_utf16(first_line: bytes, path: Path | str, fix: str = SAVE_AS_UTF8) -> None:
    """Raises DataError if the first line of a file is UTF-16 or UTF-32 text, marked or not."""
    # Without a byte-order mark, these are the encodings in which ASCII text is full of NUL bytes.
    nul_bytes = first_line.count(0)
    if first_line.startswith(_UTF16) or nul_bytes >= max(2, len(first_line) // 4):
        raise DataError(f"is UTF-16 text; {fix}", path)


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
        members = [
            member
            for member in archive.infolist()
            if member.filename
            and not member.is_dir()
            and not member.filename.startswith("__MACOSX/")
            and not Path(member.filename).name.startswith(".")
        ]
        if len(members) != 1:
            raise DataError(f"contains {len(members)} files; expected one: unpack it first", path)
        return stack.enter_context(archive.open(members[0]))
    except UnicodeDecodeError as error:  # of a name
        raise zipfile.BadZipFile(str(error)) from error


class _LimitedStream(io.RawIOBase):
    """The decompressed bytes of a file, up to a limit that follows its size."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        factor = os.environ.get(EXPANSION_VARIABLE, str(MAX_EXPANSION)).strip()
        if not factor.isascii() or not factor.isdigit():
            raise ConfigError(
                f"the environment variable {EXPANSION_VARIABLE} is {factor!r}; expected a whole "
                "number: the times its size that a compressed file may expand to (default "
                f"{MAX_EXPANSION}), or 0 for no limit"
            )
        self._stream, self._path, self._count = stream, path, 0
        times = int(factor)
        self._allowed = max(FREE_BYTES, times * path.stat().st_size) if times else float("inf")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        self._count += len(data)
        if self._count > self._allowed:
            raise DataError(
                f"expands to more than {self._allowed:,} bytes, too many for a compressed file of "
                "its size: it may have been made to exhaust memory. If you trust it, decompress it "
                f"first, or set the environment variable {EXPANSION_VARIABLE} to a larger factor "
                f"than {MAX_EXPANSION} (0: no limit)",
                self._path,
            )
        buffer[: len(data)] = data
        return len(data)
