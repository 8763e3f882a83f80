"""Relatedness (SICK, STS-Benchmark) by a ridge regression on top of frozen vectors.

A pair is described by [|a−b|; a∗b], standardised; the strength of the regularisation is chosen by
leave-one-out on the training pairs, so that the test pairs are used once.

    train = scored_pairs(encode, train_scores, train_a, train_b)
    test = scored_pairs(encode, test_scores, test_a, test_b)
    print(relatedness_report(train, test).to_markdown())
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from genpool.disk.markdown import markdown_table
from genpool.errors import InputError, require_extra
from genpool.evaluation.similarity import correlations
from genpool.evaluation.tables import ScoredPairs
from genpool.evaluation.vectors import relatedness_features

ALPHAS = (1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5)


@dataclass(frozen=True)
class RelatednessReport:
    """How well the regression predicts the scores of the test pairs.

    Args:
        total: the number of test pairs.
        pearson: Pearson's correlation of predicted and gold scores.
        spearman: Spearman's correlation of predicted and gold scores.
        mse: the mean squared error.
        alpha: the chosen strength of the regularisation.
    """

    total: int
    pearson: float
    spearman: float
    mse: float
    alpha: float

    def to_dict(self) -> dict[str, Any]:
        """Returns the five values, ready for JSON."""
        return asdict(self)

    def to_markdown(self) -> str:
        """Returns the five values as a Markdown table of one row."""
        measures = (self.pearson, self.spearman, self.mse)
        row = ["regression", f"{self.total:,}", *(f"{m:.4f}" for m in measures), f"{self.alpha:g}"]
        return (
            markdown_table(["score", "pairs", "Pearson", "Spearman", "MSE", "alpha"], [row]) + "\n"
        )


def relatedness_report(
    train: ScoredPairs, test: ScoredPairs, alphas: Sequence[float] = ALPHAS
) -> RelatednessReport:
    """Fits a ridge regression on `train` and scores it on `test`.

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
        from sklearn.metrics import mean_squared_error
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

    regression = make_pipeline(StandardScaler(), RidgeCV(alphas=alphas))
    regression.fit(relatedness_features(train.a, train.b), train.scores)
    predicted = regression.predict(relatedness_features(test.a, test.b))  # (test pairs,)
    pearson, spearman = correlations(test.scores, predicted, "predicted scores")
    return RelatednessReport(
        total=len(predicted),
        pearson=pearson,
        spearman=spearman,
        mse=float(mean_squared_error(test.scores, predicted)),
        alpha=float(regression[-1].alpha_),
    )
