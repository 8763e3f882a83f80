"""Reading text files, plain or compressed, line by line; writing files that are never half done.

Lines are physical lines of the decompressed file, counted from 1 and ended by a line feed only:
a form feed or U+2028 inside a sentence is a character of it, which `str.splitlines` forgets.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from genpool.errors import DataError

COMPRESSED = (".gz", ".xz", ".bz2", ".zip")
# Everything the decompressors raise for a file that is damaged, truncated or locked.
_DAMAGE = (EOFError, OSError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
#: how to mend a file of another encoding, for messages
SAVE_AS_UTF8 = "save it as UTF-8"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class RawLine(NamedTuple):
    """A line as bytes without its end, with its number and its first byte's offset."""

    number: int
    offset: int
    data: bytes


def uncompressed_name(path: Path) -> str:
    """The file's name without the suffix of its compression: train.tsv.xz is train.tsv."""
    return path.stem if path.suffix.lower() in COMPRESSED else path.name


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The decompressed bytes; a file that cannot be read is a DataError."""
    try:
        with _open(path) as stream:
            yield stream
    except FileNotFoundError:
        raise DataError("there is no such file", path) from None
    except _DAMAGE as error:
        text = str(error) or type(error).__name__
        raise DataError(f"cannot be read, it may be damaged or cut off: {text}", path) from error


def raw_lines(path: Path) -> Iterator[RawLine]:
    """Every line of the file, one in memory at a time."""
    offset = 0
    with open_bytes(path) as stream:
        for number, data in enumerate(stream, start=1):
            length = len(data)
            if number == 1:
                if data.startswith(_UTF16):
                    raise DataError(f"is UTF-16 text; {SAVE_AS_UTF8}", path)
                if data.startswith(codecs.BOM_UTF8):
                    offset, data = len(codecs.BOM_UTF8), data.removeprefix(codecs.BOM_UTF8)
                    length -= offset
            yield RawLine(number, offset, data.rstrip(b"\r\n"))
            offset += length


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    suffix = path.suffix.lower()
    if suffix == ".zip":
        with zipfile.ZipFile(path) as archive, archive.open(_only_member(archive, path)) as stream:
            yield stream
        return
    openers: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
    opener = openers.get(suffix, open)
    with opener(path, "rb") as stream:
        yield stream


def _only_member(archive: zipfile.ZipFile, path: Path) -> zipfile.ZipInfo:
    members = [
        member
        for member in archive.infolist()
        # macOS adds folders and hidden twins of its own to every archive.
        if not member.is_dir()
        and not member.filename.startswith("__MACOSX/")
        and not Path(member.filename).name.startswith(".")
    ]
    if len(members) != 1:
        raise DataError(f"holds {len(members)} files; expected one: unpack it first", path)
    return members[0]


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside `path` to write to; it takes the place of `path` at the end.

    Whatever goes wrong in between (a full disk, Ctrl-C) leaves `path` as it was.
    """
    target = Path(path)
    # In the same folder, because only a move within one file system happens at once; not made by
    # `tempfile`, because its files are closed to everyone else and would stay so after the move.
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        temporary.replace(target)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", target) from error
    finally:
        # The folder may be the very thing that is missing: that has been reported already.
        if temporary.exists():
            temporary.unlink()
