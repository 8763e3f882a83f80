"""Whether the cosine of two sentence vectors agrees with the scores of people (STS, SICK)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from genpool.disk.markdown import markdown_table
from genpool.errors import InputError, require_extra
from genpool.evaluation.vectors import FloatArray, as_pairs, as_scores
from genpool.tensors.unit_rows import unit_rows


@dataclass(frozen=True)
class SimilarityReport:
    """The correlation of cosines and gold scores.

    Args:
        total: the number of pairs.
        pearson: Pearson's correlation.
        spearman: Spearman's correlation.
    """

    total: int
    pearson: float
    spearman: float

    def to_dict(self) -> dict[str, Any]:
        """Returns the three values, ready for JSON."""
        return asdict(self)

    def to_markdown(self) -> str:
        """Returns the three values as a Markdown table of one row."""
        row = ["cosine", f"{self.total:,}", f"{self.pearson:.4f}", f"{self.spearman:.4f}"]
        return markdown_table(["score", "pairs", "Pearson", "Spearman"], [row]) + "\n"


def similarity_report(
    gold_scores: ArrayLike, a_vectors: ArrayLike, b_vectors: ArrayLike
) -> SimilarityReport:
    """Correlates the cosine of each pair of vectors with its gold score; nothing is trained.

    Args:
        gold_scores: the score of every pair, shape (pairs,).
        a_vectors: the vectors of the first sentences, shape (pairs, dim).
        b_vectors: the vectors of the second sentences, shape (pairs, dim).

    Raises:
        InputError: the shapes differ, a value is not finite, or all scores or cosines are equal.
        MissingExtraError: the extra `train` is not installed.

    Example:
        >>> similarity_report(scores, model.encode(first), model.encode(second)).spearman
        0.78
    """
    cosines = cosine_pairs(a_vectors, b_vectors)
    scores = as_scores(gold_scores, len(cosines))
    pearson, spearman = correlations(scores, cosines, "cosines")
    return SimilarityReport(len(cosines), pearson, spearman)


def cosine_pairs(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """Returns the cosine of each row of `a` with the same row of `b`.

    Args:
        a: vectors, shape (pairs, dim).
        b: vectors, shape (pairs, dim).

    Returns:
        The cosines, between -1 and 1, shape (pairs,). The cosine of a zero vector, as a sentence
        without tokens has, is 0.

    Raises:
        InputError: the shapes differ, or a value is not finite.

    Example:
        >>> cosine_pairs([[1.0, 0.0]], [[1.0, 1.0]])
        array([0.70710678])
    """
    first, second = as_pairs(a, b)
    cosines: FloatArray = np.sum(unit_rows(first) * unit_rows(second), axis=1)  # (pairs,)
    return np.clip(cosines, -1.0, 1.0)  # rounding may exceed 1 slightly


def correlations(gold: FloatArray, predicted: FloatArray, name: str) -> tuple[float, float]:
    """Returns Pearson's and Spearman's correlation; `name` is what `predicted` is in messages."""
    _check_varies(gold, "gold scores")
    _check_varies(predicted, name)
    with require_extra("A correlation", "train"):
        from scipy.stats import pearsonr, spearmanr

    pearson, spearman = pearsonr(gold, predicted), spearmanr(gold, predicted)
    return float(pearson.statistic), float(spearman.statistic)


def _check_varies(values: FloatArray, name: str) -> None:
    if len(values) < 2:
        raise InputError(f"a correlation needs at least 2 pairs, not {len(values)}")
    # Values that differ by rounding only are constant too: their correlation would be noise.
    if np.ptp(values) <= 1e-12 * np.abs(values).max():
        raise InputError(
            f"all {len(values)} {name} are {values[0]:.6g}: a correlation with them is not defined"
        )
