"""An .npy file that is mapped into memory, after its header and its size were checked."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genpool.errors import FolderError


def map_array(path: Path, dtype: str, shape: tuple[int, ...], said_by: str) -> NDArray[Any]:
    """Maps an array if its header and the size of its file are as expected; never a pickle.

    Args:
        path: the .npy file.
        dtype: the data type: "<f4".
        shape: the shape.
        said_by: the name of the file that says this type and shape, for messages.

    Raises:
        FolderError: the file is damaged, or has another array.
    """
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)
            stored_shape, by_columns, stored = np.lib.format.read_array_header_1_0(file)
            start = file.tell()
    except OSError:
        raise
    except Exception as error:  # NumPy passes on whatever its parser of the header raises
        raise FolderError(f"{path} is not an .npy file: {error}") from None
    if by_columns or stored_shape != shape or stored != np.dtype(dtype):
        raise FolderError(
            f"{path} contains {stored} of shape {stored_shape}; {said_by} says {np.dtype(dtype)} "
            f"of {shape}."
        )
    expected = start + math.prod(shape) * np.dtype(dtype).itemsize
    if path.stat().st_size != expected:
        raise FolderError(
            f"{path} has {path.stat().st_size:,} bytes; expected {expected:,}. Was it truncated?"
        )
    array: NDArray[Any] = np.load(path, mmap_mode="r")
    return array
