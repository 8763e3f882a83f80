"""What a student is to return: the vectors of one teacher, or those of several made comparable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genpool.disk.row_cache import HalfRows
from genpool.distillation.settings import TeacherSettings

#: random pairs of sentences from which the spread of a teacher's cosines is computed
SPREAD_PAIRS = 20_000
#: rows that are converted together
CHUNK_ROWS = 65536

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Targets:
    """How the vectors of the teachers become one target vector.

    The cosine of two targets is the weighted mean of the teachers' cosines, each centred.

    Attributes:
        means: (dim,) of every teacher, what is subtracted; zeros without centring.
        shares: how much of the cosine each teacher decides; their sum is 1.
    """

    means: tuple[NDArray[np.float32], ...]
    shares: tuple[float, ...]

    @classmethod
    def fit(cls, vectors: Sequence[HalfRows], settings: TeacherSettings) -> Targets:
        """Returns the means and shares for the vectors (sentences, dim) of every teacher."""
        if len(vectors) == 1 and not settings.centre:
            return cls((np.zeros(vectors[0].shape[1], dtype=np.float32),), (1.0,))
        means: tuple[NDArray[np.float32], ...] = tuple(
            np.asarray(settings.centre_share * np.mean(part, axis=0, dtype=np.float64), np.float32)
            for part in vectors
        )
        weights = settings.weights or (1.0,) * len(vectors)
        scaled = [
            weight / spread_of_cosines(part, mean)
            for weight, part, mean in zip(weights, vectors, means, strict=True)
        ]
        return cls(means, tuple(share / sum(scaled) for share in scaled))

    def apply(self, vectors: Sequence[HalfRows]) -> HalfRows:
        """Returns the targets (sentences, sum of dims), of length 1."""
        size, width = len(vectors[0]), sum(part.shape[1] for part in vectors)
        targets = np.empty((size, width), dtype=np.float16)
        for start in range(0, size, CHUNK_ROWS):
            chunk = [
                np.sqrt(share) * _unit(part[start : start + CHUNK_ROWS].astype(np.float32) - mean)
                for part, mean, share in zip(vectors, self.means, self.shares, strict=True)
            ]
            targets[start : start + CHUNK_ROWS] = np.concatenate(chunk, axis=1)
        return targets


def spread_of_cosines(vectors: HalfRows, mean: NDArray[np.float32]) -> float:
    """Returns the standard deviation of the centred cosines of random pairs of sentences."""
    random = np.random.default_rng(0)
    first, second = random.integers(0, len(vectors), (2, SPREAD_PAIRS))
    differ = first != second
    left, right = (
        _unit(vectors[rows[differ]].astype(np.float32) - mean) for rows in (first, second)
    )
    return max(float((left * right).sum(axis=1).std()), 1e-6)


def _unit(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Floats = rows / np.maximum(lengths, 1e-12)
    return unit
