"""An .npy file that is written in chunks, and whose number of rows is not known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@contextmanager
def growing_array(
    path: Path, dtype: str, row_shape: tuple[int, ...] = ()
) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Yields a function that appends rows.

    NumPy's header leaves space for the number of rows to grow, so it is written again at the end.

    Args:
        path: the file to write.
        dtype: the data type of the array: "<f4".
        row_shape: the shape of a row. Default: (), a single value.
    """
    rows = 0

    def header() -> dict[str, Any]:
        return {"descr": dtype, "fortran_order": False, "shape": (rows, *row_shape)}

    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header())

        def append(chunk: NDArray[Any]) -> None:
            nonlocal rows
            file.write(np.ascontiguousarray(chunk, dtype=dtype).data)
            rows += len(chunk)

        yield append
        file.seek(0)
        np.lib.format.write_array_header_1_0(file, header())
