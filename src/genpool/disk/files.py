"""Reading text files, plain or compressed, line by line.

Lines are physical lines of the decompressed file, counted from 1 and ended by a line feed only:
a form feed or U+2028 inside a sentence is part of it (`str.splitlines` would end the line there).
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from genpool.disk.expansion import limit_expansion
from genpool.errors import DataError

COMPRESSED = (".gz", ".xz", ".bz2", ".zip")
# Everything the decompressors raise for a file that is damaged, truncated or locked.
_DAMAGE = (EOFError, OSError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
#: how to fix a file of another encoding, for messages
SAVE_AS_UTF8 = "save it as UTF-8"
#: longest line that is read: the next line end may be many gigabytes away in a file that is no text
MAX_LINE_BYTES = 2**30
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class RawLine(NamedTuple):
    """A line as bytes, without its line end.

    Attributes:
        number: its number, from 1.
        offset: the offset of its first byte in the decompressed file.
        data: its bytes.
    """

    number: int
    offset: int
    data: bytes


def is_file(path: str | Path) -> bool:
    """Returns whether a file exists; no name is too long to ask, as a sentence may be."""
    try:
        return Path(path).is_file()
    except OSError:
        return False


def is_folder(path: str | Path) -> bool:
    """Returns whether a folder exists, for any name."""
    try:
        return Path(path).is_dir()
    except OSError:
        return False


def uncompressed_name(path: Path) -> str:
    """Returns the name of a file without its compression suffix: train.tsv of train.tsv.xz."""
    return path.stem if path.suffix.lower() in COMPRESSED else path.name


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Opens a file, decompressed by its suffix.

    Raises:
        DataError: the file is missing, damaged or truncated.
    """
    try:
        with _open(path) as stream:
            yield stream
    except FileNotFoundError:
        raise DataError("there is no such file", path) from None
    except _DAMAGE as error:
        text = str(error) or type(error).__name__
        raise DataError(f"cannot be read, it may be damaged or truncated: {text}", path) from error


def raw_lines(
    path: Path, fix: str = SAVE_AS_UTF8, first: int = 1, offset: int = 0
) -> Iterator[RawLine]:
    """Yields the lines of a file, with one in memory at a time.

    Args:
        path: the file.
        fix: what the error for UTF-16 text advises. Default: to save the file as UTF-8.
        first: the number of the line to begin with. Default: 1.
        offset: the offset of its first byte, as an earlier pass found it. Default: 0.

    Raises:
        DataError: the file cannot be read, or is not text in UTF-8.
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


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    suffix = path.suffix.lower()
    if suffix == ".zip":
        with ExitStack() as stack:
            yield limit_expansion(_open_member(path, stack), path)
        return
    openers: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
    opener = openers.get(suffix, open)
    if suffix in openers and path.is_file() and not path.stat().st_size:
        raise EOFError("it is empty")  # which gzip alone takes for no data
    with opener(path, "rb") as stream:
        yield limit_expansion(stream, path) if suffix in openers else stream


def _open_member(path: Path, stack: ExitStack) -> IO[bytes]:
    """Opens the only file of an archive; the stack closes both."""
    try:
        archive = stack.enter_context(zipfile.ZipFile(path))
        return stack.enter_context(archive.open(_only_member(archive, path)))
    except UnicodeDecodeError as error:  # of a name
        raise zipfile.BadZipFile(str(error)) from error


def _only_member(archive: zipfile.ZipFile, path: Path) -> zipfile.ZipInfo:
    members = [
        member
        for member in archive.infolist()
        # macOS adds folders and hidden files to every archive.
        if member.filename
        and not member.is_dir()
        and not member.filename.startswith("__MACOSX/")
        and not Path(member.filename).name.startswith(".")
    ]
    if len(members) != 1:
        raise DataError(f"contains {len(members)} files; expected one: unpack it first", path)
    return members[0]
