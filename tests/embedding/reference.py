"""Word vectors from letters, in NumPy and window by window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def spelled_vector(letters: np.ndarray, filters: Sequence[np.ndarray]) -> np.ndarray:
    """max over positions of ReLU(filter * window), for filters (maps, dim, width) of odd width.

    letters (letters, dim) of one word. The window of a position is centred on it; zeros stand
    beyond both ends of the word. A word without letters gives zeros.
    """
    vector = []
    for each in filters:
        maps, _, width = each.shape
        for number in range(maps):
            best = 0.0
            for position in range(len(letters)):
                total = 0.0
                for offset in range(width):
                    place = position + offset - width // 2
                    if 0 <= place < len(letters):
                        total += float(each[number, :, offset] @ letters[place])
                best = max(best, total)
            vector.append(best)
    return np.array(vector)
