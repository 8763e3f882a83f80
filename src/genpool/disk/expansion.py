"""A limit on how far a compressed file may expand: a few kilobytes can hold many gigabytes."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

from genpool.errors import ConfigError, DataError

#: a file that expands to no more than this is never refused
FREE_BYTES = 64 * 2**20
#: times its own size that a larger file may expand to; text compresses 3 to 50 times
MAX_EXPANSION = 200
#: environment variable that sets another limit; 0 removes it
VARIABLE = "GENPOOL_MAX_EXPANSION"
BUFFER_BYTES = 2**16


def limit_expansion(stream: IO[bytes], path: Path) -> IO[bytes]:
    """Returns a buffered stream of the same bytes, which raises DataError if they are too many.

    Args:
        stream: the decompressed bytes of `path`.
        path: the compressed file.
    """
    times = _max_expansion()
    allowed = max(FREE_BYTES, times * path.stat().st_size) if times else None
    return io.BufferedReader(_Counted(stream.read, path, allowed), BUFFER_BYTES)


def _max_expansion() -> int:
    value = os.environ.get(VARIABLE, str(MAX_EXPANSION)).strip()
    if not value.isascii() or not value.isdigit():
        raise ConfigError(
            f"the environment variable {VARIABLE} is {value!r}; expected a whole number: the "
            f"times its size that a compressed file may expand to (default {MAX_EXPANSION}), or 0 "
            "for no limit"
        )
    return int(value)


class _Counted(io.RawIOBase):
    """Counts the bytes that pass through, and refuses more than are allowed."""

    def __init__(self, read: Callable[[int], bytes], path: Path, allowed: int | None) -> None:
        self._read, self._path, self._allowed = read, path, allowed
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._read(len(buffer))
        self._count += len(data)
        if self._allowed is not None and self._count > self._allowed:
            raise DataError(
                f"expands to more than {self._allowed:,} bytes, too many for a compressed file of "
                "its size: it may have been made to exhaust memory. If you trust it, decompress "
                f"it first, or set the environment variable {VARIABLE} to a larger factor than "
                f"{MAX_EXPANSION} (0: no limit)",
                self._path,
            )
        buffer[: len(data)] = data
        return len(data)
