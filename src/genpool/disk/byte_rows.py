"""Rows of bytes in two files: the bytes one after the other, and where each row starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genpool.disk.growing_array import growing_array
from genpool.disk.mapped_array import map_array
from genpool.errors import FolderError

INTEGER = "<i8"


@contextmanager
def growing_rows(data: Path, offsets: Path) -> Iterator[Callable[[Sequence[bytes]], None]]:
    """Yields a function that appends rows.

    Args:
        data: the file of the bytes.
        offsets: an .npy file (rows + 1,) of the start of each row; the last value is the size of
            `data`.
    """
    with growing_array(offsets, INTEGER) as add_ends, data.open("wb") as file:
        add_ends(np.zeros(1, np.int64))

        def append(rows: Sequence[bytes]) -> None:
            ends = list(accumulate(map(len, rows), initial=file.tell()))[1:]
            file.write(b"".join(rows))
            add_ends(np.array(ends, np.int64))

        yield append


@dataclass(frozen=True)
class ByteRows:
    """Rows of bytes, mapped into memory.

    Args:
        data: all bytes (bytes,).
        offsets: the start of each row, and the end of the last (rows + 1,).
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def map(cls, data: Path, offsets: Path, rows: int, said_by: str) -> ByteRows:
        """Maps the files that `growing_rows` wrote.

        Args:
            data: the file of the bytes.
            offsets: the file of the starts.
            rows: the number of rows.
            said_by: the name of the file that says this number, for messages.

        Raises:
            FolderError: the files do not fit together.
        """
        starts = map_array(offsets, INTEGER, (rows + 1,), said_by)
        size = data.stat().st_size
        if (int(starts[0]), int(starts[-1])) != (0, size):
            raise FolderError(
                f"{data} has {size:,} bytes; {offsets.name} says {int(starts[-1]):,}. Was a file "
                "truncated, or is it of another index?"
            )
        # An empty file cannot be mapped.
        return cls(np.memmap(data, np.uint8, "r") if size else np.empty(0, np.uint8), starts)

    def read(self, first: int, last: int) -> bytes:
        """Returns the bytes of the rows from `first` to `last`, which is not included.

        Raises:
            ValueError: the offsets are damaged.
        """
        start, end = int(self.offsets[first]), int(self.offsets[last])
        if not 0 <= start <= end <= len(self.data):
            raise ValueError(f"it goes from byte {start} to {end}")
        return self.data[start:end].tobytes()
