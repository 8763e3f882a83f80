"""Word vectors from characters, in NumPy and window by window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def character_vector(
    characters: np.ndarray, filters: Sequence[np.ndarray], padding: str = "both"
) -> np.ndarray:
    """max over positions of ReLU(filter * window), for filters (maps, dim, width).

    characters (characters, dim) of one word. With padding="both" the window of a position is
    centred on it (filters of odd width); with "right" it starts there. Beyond both ends of the word
    are zeros. A word without characters has a vector of zeros.
    """
    vector = []
    for weights in filters:
        maps, _, width = weights.shape
        before = width // 2 if padding == "both" else 0
        for feature in range(maps):
            best = 0.0
            for position in range(len(characters)):
                total = 0.0
                for offset in range(width):
                    covered = position + offset - before
                    if 0 <= covered < len(characters):
                        total += float(weights[feature, :, offset] @ characters[covered])
                best = max(best, total)
            vector.append(best)
    return np.array(vector)
