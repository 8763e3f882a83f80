"""Batches in which some sentences are close in meaning: the teacher's neighbours together.

Sentences at random are unrelated, and a student that only compares those learns little about which
of two close sentences is closer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: dimensions that decide which sentences are close: the first ones say most
COMPARED_DIMENSIONS = 64
CHUNK_ROWS = 8192


def neighbour_order(
    targets: NDArray[np.float32], neighbours: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Returns an order of all sentences in which those next to each other are close.

    Every sentence goes to the nearest of some sentences drawn at random; the sentences of one of
    them, `neighbours` at most, follow each other, and such runs are in random order.

    Args:
        targets: (sentences, dim), leading dimensions first.
        neighbours: sentences of a run.
        random: draws the centres and the order, so that epochs differ.
    """
    vectors = targets[:, :COMPARED_DIMENSIONS]
    centres = random.permutation(len(vectors))[: max(1, len(vectors) // neighbours)]
    nearest = np.empty(len(vectors), dtype=np.int64)
    for start in range(0, len(vectors), CHUNK_ROWS):
        cosines = vectors[start : start + CHUNK_ROWS] @ vectors[centres].T  # (chunk, centres)
        nearest[start : start + CHUNK_ROWS] = cosines.argmax(axis=1)
    shuffled = random.permutation(len(vectors))
    by_centre = shuffled[np.argsort(nearest[shuffled], kind="stable")]  # (sentences,)
    # A run ends after so many sentences, or where the next centre begins.
    centre_of = nearest[by_centre]
    starts = np.flatnonzero(np.r_[True, centre_of[1:] != centre_of[:-1]])
    place = np.arange(len(by_centre)) - np.repeat(starts, np.diff(np.r_[starts, len(by_centre)]))
    run = np.cumsum(place % neighbours == 0) - 1  # (sentences,)
    rank: NDArray[Any] = random.permutation(int(run[-1]) + 1)
    return by_centre[np.argsort(rank[run], kind="stable")]


def cut_batches(order: NDArray[np.int64], size: int) -> Iterator[list[int]]:
    """Yields batches of exactly `size` sentences, but for the last; one alone is left out."""
    for start in range(0, len(order), size):
        batch = order[start : start + size].tolist()
        if len(batch) > 1:
            yield batch
