"""Relatedness (SICK, STS-Benchmark) by a ridge regression on top of frozen vectors.

A pair is described by [|a−b|; a∗b], standardised; how strongly to regularise is chosen by
leave-one-out on the training pairs, so that the test pairs are looked at once.

    train = scored_pairs(encode, train_scores, train_a, train_b)
    test = scored_pairs(encode, test_scores, test_a, test_b)
    print(relatedness_report(train, test).to_markdown())
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from genpool.errors import InputError
from genpool.evaluation._extra import train_extra
from genpool.evaluation._markdown import markdown_table
from genpool.evaluation.similarity import correlations
from genpool.evaluation.tables import ScoredPairs
from genpool.evaluation.vectors import relatedness_features

ALPHAS = (1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5)


@dataclass(frozen=True)
class RelatednessReport:
    """How well the regression predicts the scores of `total` test pairs, and the chosen alpha."""

    total: int
    pearson: float
    spearman: float
    mse: float
    alpha: float

    def to_dict(self) -> dict[str, Any]:
        """The five numbers, ready for JSON."""
        return asdict(self)

    def to_markdown(self) -> str:
        """The five numbers as a one-row table."""
        measures = (self.pearson, self.spearman, self.mse)
        row = ["regression", f"{self.total:,}", *(f"{m:.4f}" for m in measures), f"{self.alpha:g}"]
        return (
            markdown_table(["score", "pairs", "Pearson", "Spearman", "MSE", "alpha"], [row]) + "\n"
        )


def relatedness_report(
    train: ScoredPairs, test: ScoredPairs, alphas: Sequence[float] = ALPHAS
) -> RelatednessReport:
    """Fit on `train`, where alpha is chosen too, and score `test`."""
    if train.a.shape[1] != test.a.shape[1]:
        raise InputError(
            f"train vectors have {train.a.shape[1]} numbers and test vectors {test.a.shape[1]}"
        )
    if len(train.scores) < 3:
        raise InputError(f"a regression needs at least 3 training pairs, not {len(train.scores)}")
    if not alphas or min(alphas) <= 0:
        raise InputError(f"alphas have to be positive numbers, given {list(alphas)}")
    with train_extra("A relatedness report"):
        from sklearn.linear_model import RidgeCV
        from sklearn.metrics import mean_squared_error
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

    regression = make_pipeline(StandardScaler(), RidgeCV(alphas=alphas))
    regression.fit(relatedness_features(train.a, train.b), train.scores)
    found = regression.predict(relatedness_features(test.a, test.b))  # (test pairs,)
    pearson, spearman = correlations(test.scores, found, "predicted scores")
    return RelatednessReport(
        total=len(found),
        pearson=pearson,
        spearman=spearman,
        mse=float(mean_squared_error(test.scores, found)),
        alpha=float(regression[-1].alpha_),
    )
