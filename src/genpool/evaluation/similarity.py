"""Correlation with the scores of people (STS, SICK): of cosines, of a regression, of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from genpool.disk.files import markdown_table
from genpool.errors import InputError, require_extra
from genpool.evaluation.accuracy import Report
from genpool.evaluation.vectors import FloatArray, ScoredPairs, as_pairs
from genpool.tensors.arrays import unit_rows

ALPHAS = (1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5)


@dataclass(frozen=True)
class ScoreReport(Report):
    """The correlation of predicted and gold scores, over `total` rows."""

    total: int
    pearson: float
    spearman: float

    @classmethod
    def from_scores(cls, gold: FloatArray, predicted: FloatArray) -> ScoreReport:
        """Returns the report on the scores of the same rows; 0 where a side does not vary."""
        if len(gold) < 2 or _is_constant(gold) or _is_constant(predicted):
            return cls(len(gold), 0.0, 0.0)
        return cls(len(gold), *correlations(gold, predicted, "predicted scores"))

    def to_markdown(self) -> str:
        """Returns the values as a Markdown table of one row."""
        return self._table({"rows": f"{self.total:,}"})

    def _table(self, first: Mapping[str, str], last: Mapping[str, str] | None = None) -> str:
        correlations = {"Pearson": f"{self.pearson:.4f}", "Spearman": f"{self.spearman:.4f}"}
        columns = {**first, **correlations, **(last or {})}
        return markdown_table(list(columns), [list(columns.values())]) + "\n"

    def __str__(self) -> str:
        return f"Pearson {self.pearson:.4f}, Spearman {self.spearman:.4f}"


@dataclass(frozen=True)
class SimilarityReport(ScoreReport):
    """The correlation of the cosines of pairs with their gold scores."""

    def to_markdown(self) -> str:
        return self._table({"score": "cosine", "pairs": f"{self.total:,}"})


@dataclass(frozen=True)
class RelatednessReport(ScoreReport):
    """How well the regression predicts the scores of the test pairs."""

    mse: float  # the mean squared error
    alpha: float  # the chosen strength of the regularisation

    def to_markdown(self) -> str:
        first = {"score": "regression", "pairs": f"{self.total:,}"}
        return self._table(first, {"MSE": f"{self.mse:.4f}", "alpha": f"{self.alpha:g}"})


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
    arrays: Sequence[Any] = (gold_scores, a_vectors, b_vectors)  # which it converts
    pairs = ScoredPairs(*arrays)
    correlation = correlations(pairs.scores, cosine_pairs(pairs.a, pairs.b), "cosines")
    return SimilarityReport(len(pairs.scores), *correlation)


def cosine_pairs(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """Returns the cosine of each row of `a` (pairs, dim) with the same row of `b`, (pairs,).

    The cosine of a zero vector, as a sentence without tokens has, is 0.
    """
    first, second = as_pairs(a, b)
    cosines: FloatArray = np.sum(unit_rows(first) * unit_rows(second), axis=1)  # (pairs,)
    return np.clip(cosines, -1.0, 1.0)  # rounding may exceed 1 slightly


def relatedness_report(
    train: ScoredPairs, test: ScoredPairs, alphas: Sequence[float] = ALPHAS
) -> RelatednessReport:
    """Fits a ridge regression on `train` and scores it on `test`.

    A pair is [|a−b|; a∗b], standardised; alpha is chosen by leaving each training pair out once.

    Args:
        train: the training pairs, at least 3.
        test: the pairs to score.
        alphas: the strengths of regularisation to choose from, on `train`. Default: 0.1 to 1e5.

    Raises:
        InputError: the pairs have different dimensions or are too few, or an alpha is not
            positive.
        MissingExtraError: the extra `train` is not installed.

    Example:
        >>> relatedness_report(scored_pairs(encode, scores, a, b), test).pearson
        0.83
    """
    if train.a.shape[1] != test.a.shape[1]:
        raise InputError(
            f"train vectors have {train.a.shape[1]} dimensions and test vectors {test.a.shape[1]}"
        )
    if len(train.scores) < 3:
        raise InputError(f"a regression needs at least 3 training pairs, not {len(train.scores)}")
    if not alphas or min(alphas) <= 0:
        raise InputError(f"alphas is {list(alphas)}; expected positive numbers")
    with require_extra("A relatedness report", "train"):
        from sklearn.linear_model import RidgeCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

    regression = make_pipeline(StandardScaler(), RidgeCV(alphas=alphas))
    regression.fit(_relatedness_features(train), train.scores)
    predicted = regression.predict(_relatedness_features(test))  # (test pairs,)
    pearson, spearman = correlations(test.scores, predicted, "predicted scores")
    mse = float(np.mean((test.scores - predicted) ** 2))
    return RelatednessReport(len(predicted), pearson, spearman, mse, float(regression[-1].alpha_))


def _relatedness_features(pairs: ScoredPairs) -> FloatArray:
    """Returns [|a−b|; a∗b], (pairs, 2 × dim), which is symmetric in a and b, as relatedness is."""
    return np.concatenate([np.abs(pairs.a - pairs.b), pairs.a * pairs.b], axis=1)


def correlations(gold: FloatArray, predicted: FloatArray, name: str) -> tuple[float, float]:
    """Returns Pearson's and Spearman's correlation; `name` is what `predicted` is in messages."""
    for values, side in ((gold, "gold scores"), (predicted, name)):
        if len(values) < 2:
            raise InputError(f"a correlation needs at least 2 pairs, not {len(values)}")
        if _is_constant(values):
            raise InputError(
                f"all {len(values)} {side} are {values[0]:.6g}: a correlation with them is not "
                "defined"
            )
    with require_extra("A correlation", "train"):
        from scipy.stats import pearsonr, spearmanr

    pearson, spearman = pearsonr(gold, predicted), spearmanr(gold, predicted)
    return float(pearson.statistic), float(spearman.statistic)


def _is_constant(values: FloatArray) -> bool:
    # Values that differ by rounding only are constant too: their correlation would be noise.
    return bool(np.ptp(values) <= 1e-12 * np.abs(values).max())
