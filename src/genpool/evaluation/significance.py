"""Is one model better than another on the same rows, or only luckier?

The paper marks an improvement with a one-tailed paired t-test on which rows each model gets right.
McNemar's exact test looks at the rows on which only one of the two is right; it assumes no normal
distribution and is valid for few rows.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genpool.disk.files import markdown_table, percent, percent_interval
from genpool.errors import InputError, require_extra
from genpool.evaluation.predictions import Predictions

CONFIDENCE = 0.95
_SAME_ROWS = "both must hold the same rows in the same order"


@dataclass(frozen=True)
class Comparison:
    """Two models, A and B, on the same rows.

    If A and B differ equally on every row there is no variance: `t_statistic` is None and
    `interval` is a point. Without any difference `t_p_value` is 0.5 (neither side is favoured) and
    `mcnemar_p_value` is 1. With only A right on every row `t_p_value` is 0, with only B right it is
    1: these are limits of the test, not evidence; read McNemar's value there.
    """

    total: int  # the number of rows
    correct_a: int  # the rows that A predicts correctly
    correct_b: int
    accuracy_a: float
    accuracy_b: float
    difference: float  # accuracy_a - accuracy_b
    interval: tuple[float, float]  # of the difference, 95 %: Student's t, cut at -1 and 1
    only_a: int  # the rows that only A predicts correctly
    only_b: int
    t_statistic: float | None  # of the paired t-test; None without variance
    t_p_value: float  # one-tailed: small if A is better than B, near 1 if B is better than A
    mcnemar_p_value: float  # of McNemar's exact test, two-sided

    def to_dict(self) -> dict[str, Any]:
        """Returns the comparison as lists and numbers, ready for JSON."""
        return {**asdict(self), "interval": list(self.interval)}

    def to_markdown(self, name_a: str = "A", name_b: str = "B") -> str:
        """Returns Markdown: a table of the two models, the difference and both tests."""
        scores = markdown_table(
            ["model", "accuracy", "right", "right where the other is wrong"],
            [
                [name_a, percent(self.accuracy_a), f"{self.correct_a:,}", f"{self.only_a:,}"],
                [name_b, percent(self.accuracy_b), f"{self.correct_b:,}", f"{self.only_b:,}"],
            ],
        )
        statistic = "none" if self.t_statistic is None else f"{self.t_statistic:.3f}"
        answers = [
            f"- {self.total:,} rows; {name_a} minus {name_b} = {100 * self.difference:+.2f} points "
            f"(95 % interval {percent_interval(self.interval)})",
            f"- {name_a} better than {name_b}, one-tailed paired t-test: "
            f"t = {statistic}, p = {self.t_p_value:.4g}",
            f"- {name_a} and {name_b} differ, McNemar's exact test: p = {self.mcnemar_p_value:.4g}",
        ]
        return scores + "\n\n" + "\n".join(answers) + "\n"


def compare_predictions(a: Predictions, b: Predictions) -> Comparison:
    """Tests whether the predictions `a` are better than `b`.

    Args:
        a: the predictions of model A, with gold labels.
        b: the predictions of model B for the same rows, in the same order.

    Raises:
        InputError: the rows differ, are fewer than 2, or have no gold label.
        MissingExtraError: the extra `train` is not installed.

    Example:
        >>> compare_predictions(read_predictions("a.tsv"), read_predictions("b.tsv")).t_p_value
        0.031
    """
    for row, (id_a, id_b) in enumerate(zip(a.ids, b.ids, strict=False)):
        where = f"row {row + 1} (line {row + 2} of the files)"
        if id_a != id_b:
            raise InputError(f"{where} has id {id_a!r} in A and {id_b!r} in B; {_SAME_ROWS}")
        gold_a, gold_b = a.gold[row], b.gold[row]
        if gold_a != gold_b:
            raise InputError(
                f"{where}, id {id_a!r}, has gold {gold_a!r} in A and {gold_b!r} in B; {_SAME_ROWS}"
            )
        if gold_a is None:
            raise InputError(f"{where}, id {id_a!r}, has no gold label: nothing to compare with")
    if len(a.ids) != len(b.ids):
        raise InputError(f"A has {len(a.ids)} rows and B has {len(b.ids)}; {_SAME_ROWS}")
    return compare_correct(_right(a), _right(b))


def _right(predictions: Predictions) -> NDArray[np.float64]:
    pairs = zip(predictions.gold, predictions.predicted, strict=True)
    return np.array([gold == predicted for gold, predicted in pairs], dtype=np.float64)


def compare_correct(right_a: NDArray[np.float64], right_b: NDArray[np.float64]) -> Comparison:
    """Tests whether A is better than B from which rows each has right: 1 or 0, (rows,)."""
    if len(right_a) != len(right_b) or len(right_a) < 2:
        raise InputError(
            f"a comparison needs at least 2 rows, as many of A as of B; got {len(right_a)} and "
            f"{len(right_b)}"
        )
    with require_extra("A significance test", "train"):
        from scipy.stats import binomtest

    only_a = int(np.sum(right_a > right_b))
    only_b = int(np.sum(right_b > right_a))
    discordant = only_a + only_b
    statistic, p_value, interval = paired_t_test(right_a, right_b)
    return Comparison(
        total=len(right_a),
        correct_a=int(right_a.sum()),
        correct_b=int(right_b.sum()),
        accuracy_a=float(right_a.mean()),
        accuracy_b=float(right_b.mean()),
        difference=(only_a - only_b) / len(right_a),
        interval=interval,
        only_a=only_a,
        only_b=only_b,
        t_statistic=statistic,
        t_p_value=p_value,
        mcnemar_p_value=float(binomtest(only_a, discordant).pvalue) if discordant else 1.0,
    )


def paired_t_test(
    right_a: NDArray[np.float64], right_b: NDArray[np.float64]
) -> tuple[float | None, float, tuple[float, float]]:
    """Returns t, the one-tailed p-value (small if A is better than B), and the 95 % interval.

    Both are 1 where a model is right and 0 where it is wrong, (rows,), or the share of several
    models, such as one of each seed, that are right. t is None without variance.
    """
    with require_extra("A significance test", "train"):
        from scipy.stats import ttest_rel

    differences = right_a - right_b  # (rows,)
    if np.ptp(differences) == 0:
        same = float(differences[0])
        return None, 0.5 - 0.5 * float(np.sign(same)), (same, same)
    one_tailed = ttest_rel(right_a, right_b, alternative="greater")
    limits = ttest_rel(right_a, right_b).confidence_interval(CONFIDENCE)
    interval = max(float(limits.low), -1.0), min(float(limits.high), 1.0)
    return float(one_tailed.statistic), float(one_tailed.pvalue), interval
