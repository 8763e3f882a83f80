"""Vectors of length 1, as NumPy arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def unit_rows(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns rows (n, dim) of length 1; a row of zeros stays zeros.

    Any finite row is handled, however small or large its values are.
    """
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)  # (n, 1)
    scaled = vectors / np.where(largest > 0, largest, 1.0)  # squares of 1e-200 would vanish
    # Sums along a row, and no matrix product, whose order of additions depends on the row.
    lengths = np.sqrt((scaled * scaled).sum(axis=1, keepdims=True))  # (n, 1)
    unit: NDArray[np.float64] = scaled / np.where(lengths > 0, lengths, 1.0)
    return unit
