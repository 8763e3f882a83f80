"""Vectors of length 1, as NumPy arrays."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Float = TypeVar("Float", np.float32, np.float64)


def unit_rows(vectors: NDArray[Float]) -> NDArray[Float]:
    """Returns vectors (..., dim) of length 1; a vector of zeros stays zeros.

    Any finite vector is handled, however small or large its values are.
    """
    largest = np.abs(vectors).max(axis=-1, keepdims=True, initial=0)  # (..., 1)
    scaled = vectors / np.where(largest > 0, largest, 1)  # squares of 1e-200 would vanish
    # Sums along a row, and no matrix product, whose order of additions depends on the row.
    lengths = np.sqrt((scaled * scaled).sum(axis=-1, keepdims=True))  # (..., 1)
    unit = scaled / np.where(lengths > 0, lengths, 1)
    return unit.astype(vectors.dtype, copy=False)
