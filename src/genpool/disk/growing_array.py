"""An .npy file whose rows come one chunk at a time, and whose number is not known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@contextmanager
def growing_array(
    path: Path, kind: str, row_shape: tuple[int, ...] = ()
) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Gives a function that appends rows. kind: the number type, such as "<f4".

    NumPy's header leaves room for the number of rows to grow, so it is written again at the end.
    """
    rows = 0

    def header() -> dict[str, Any]:
        return {"descr": kind, "fortran_order": False, "shape": (rows, *row_shape)}

    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header())

        def append(chunk: NDArray[Any]) -> None:
            nonlocal rows
            file.write(np.ascontiguousarray(chunk, dtype=kind).data)
            rows += len(chunk)

        yield append
        file.seek(0)
        np.lib.format.write_array_header_1_0(file, header())
