"""Does the cosine of two sentence vectors follow what people say (STS, SICK)?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from genpool.errors import InputError
from genpool.evaluation._extra import train_extra
from genpool.evaluation._markdown import markdown_table
from genpool.evaluation.vectors import FloatArray, as_pairs, as_scores


@dataclass(frozen=True)
class SimilarityReport:
    """Pearson's and Spearman's correlation of cosine and gold score over `total` pairs."""

    total: int
    pearson: float
    spearman: float

    def to_dict(self) -> dict[str, Any]:
        """The three numbers, ready for JSON."""
        return asdict(self)

    def to_markdown(self) -> str:
        """The three numbers as a one-row table."""
        row = ["cosine", f"{self.total:,}", f"{self.pearson:.4f}", f"{self.spearman:.4f}"]
        return markdown_table(["score", "pairs", "Pearson", "Spearman"], [row]) + "\n"


def similarity_report(
    gold_scores: ArrayLike, a_vectors: ArrayLike, b_vectors: ArrayLike
) -> SimilarityReport:
    """Correlate the cosine of each pair with its gold score; nothing is trained."""
    cosines = cosine_pairs(a_vectors, b_vectors)
    scores = as_scores(gold_scores, len(cosines))
    pearson, spearman = correlations(scores, cosines, "cosines")
    return SimilarityReport(len(cosines), pearson, spearman)


def cosine_pairs(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """The cosine of each row of `a` with the same row of `b`, within −1 to 1.

    A zero vector, as a sentence without tokens has, is like nothing: its cosine is 0.
    """
    first, second = as_pairs(a, b)
    cosines: FloatArray = np.sum(_unit(first) * _unit(second), axis=1)  # (pairs,)
    return np.clip(cosines, -1.0, 1.0)  # rounding may pass 1 by a hair


def correlations(gold: FloatArray, found: FloatArray, name: str) -> tuple[float, float]:
    """Pearson's and Spearman's correlation; `name` says what `found` is if it has none."""
    _check_varies(gold, "gold scores")
    _check_varies(found, name)
    with train_extra("A correlation"):
        from scipy.stats import pearsonr, spearmanr

    return float(pearsonr(gold, found).statistic), float(spearmanr(gold, found).statistic)


def _unit(vectors: FloatArray) -> FloatArray:
    largest = np.abs(vectors).max(axis=1, keepdims=True)  # (pairs, 1)
    # Divided by its largest number first, so that no square overflows or vanishes.
    scaled = vectors / np.where(largest > 0, largest, 1.0)
    length = np.linalg.norm(scaled, axis=1, keepdims=True)  # (pairs, 1), at least 1 or exactly 0
    unit: FloatArray = scaled / np.where(length > 0, length, 1.0)
    return unit


def _check_varies(values: FloatArray, name: str) -> None:
    if len(values) < 2:
        raise InputError(f"a correlation needs at least 2 pairs, not {len(values)}")
    # Numbers that differ by rounding only are constant too: their correlation would be noise.
    if np.ptp(values) <= 1e-12 * np.abs(values).max():
        raise InputError(
            f"all {len(values)} {name} are {values[0]:.6g}: a correlation with them is not defined"
        )
