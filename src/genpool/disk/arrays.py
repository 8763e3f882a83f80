"""Arrays and rows of bytes on disk: written in chunks, mapped into memory after a check."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genpool.errors import FolderError

INTEGER = "<i8"


@contextmanager
def growing_array(
    path: Path, dtype: str, row_shape: tuple[int, ...] = ()
) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Yields a function that appends rows of `row_shape` to a new .npy file."""
    header = {"descr": dtype, "fortran_order": False, "shape": (0, *row_shape)}
    rows = 0
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)

        def append(chunk: NDArray[Any]) -> None:
            nonlocal rows
            file.write(np.ascontiguousarray(chunk, dtype=dtype).data)
            rows += len(chunk)

        yield append
        file.seek(0)  # NumPy's header leaves space for the number of rows to grow
        np.lib.format.write_array_header_1_0(file, header | {"shape": (rows, *row_shape)})


def map_array(path: Path, dtype: str, shape: tuple[int, ...], card: str) -> NDArray[Any]:
    """Maps an .npy file into memory if it has the type and shape that the file `card` says."""
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)
            stored_shape, by_columns, stored = np.lib.format.read_array_header_1_0(file)
            start = file.tell()
    except OSError:
        raise
    except Exception as error:  # NumPy passes on whatever its parser of the header raises
        raise FolderError(f"{path} is not an .npy file: {error}") from None
    expected = np.dtype(dtype)
    if by_columns or stored_shape != shape or stored != expected:
        raise FolderError(
            f"{path} contains {stored} of shape {stored_shape}; {card} says {expected} of {shape}."
        )
    size, expected_size = path.stat().st_size, start + math.prod(shape) * expected.itemsize
    if size != expected_size:
        raise FolderError(
            f"{path} has {size:,} bytes; expected {expected_size:,}. Was it truncated?"
        )
    return np.lib.format.open_memmap(path, mode="r")


@contextmanager
def growing_rows(data: Path, offsets: Path) -> Iterator[Callable[[Sequence[bytes]], None]]:
    """Yields a function that appends rows of bytes to `data`, and their ends to `offsets`."""
    with growing_array(offsets, INTEGER) as add_ends, data.open("wb") as file:
        add_ends(np.zeros(1, np.int64))

        def append(rows: Sequence[bytes]) -> None:
            ends = list(accumulate(map(len, rows), initial=file.tell()))[1:]
            file.write(b"".join(rows))
            add_ends(np.array(ends, np.int64))

        yield append


@dataclass(frozen=True)
class ByteRows:
    """Rows of bytes, mapped into memory: all bytes, and the offsets (rows + 1,) of the rows."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def map(cls, data: Path, offsets: Path, rows: int, card: str) -> ByteRows:
        """Maps what `growing_rows` wrote; `card` names the file that says how many rows it is."""
        starts = map_array(offsets, INTEGER, (rows + 1,), card)
        size = data.stat().st_size
        if (int(starts[0]), int(starts[-1])) != (0, size):
            raise FolderError(
                f"{data} has {size:,} bytes; {offsets.name} says {int(starts[-1]):,}. Was a file "
                "truncated, or is it of another index?"
            )
        # An empty file cannot be mapped.
        return cls(np.memmap(data, np.uint8, "r") if size else np.empty(0, np.uint8), starts)

    def read(self, first: int, last: int) -> bytes:
        """Returns the bytes of rows `first` to `last - 1`; ValueError for damaged offsets."""
        start, end = int(self.offsets[first]), int(self.offsets[last])
        if not 0 <= start <= end <= len(self.data):
            raise ValueError(f"it goes from byte {start} to {end}")
        return self.data[start:end].tobytes()
