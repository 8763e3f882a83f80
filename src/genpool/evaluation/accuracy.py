"""Accuracy: overall, per class and genre, with its interval; calibration; two models compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from operator import eq
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genpool.disk.files import markdown_table, percent, percent_interval
from genpool.errors import InputError, require_extra, unknown_name
from genpool.evaluation.predictions import Predictions

CONFIDENCE = 0.95
#: bins of the expected calibration error
BINS = 15
Rows = NDArray[np.float64]


@dataclass(frozen=True)
class Report:
    """A result of an evaluation."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the values by their names, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class ClassScore:
    """Precision, recall and F1 of one label; 0 where a denominator is zero."""

    label: str
    precision: float  # the share of the rows predicted as this label that have it
    recall: float  # the share of the rows with this label that were predicted as such
    f1: float  # the harmonic mean of the two
    support: int  # the number of rows with this label


@dataclass(frozen=True)
class GenreScore:
    """The accuracy on the rows of one genre, with Wilson's 95 % interval."""

    genre: str
    correct: int
    total: int
    accuracy: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class AccuracyReport(Report):
    """How often the predicted label is the gold one.

    `confusion[i][j]` counts the rows whose gold label is `labels[i]` and whose predicted label is
    `labels[j]`.
    """

    correct: int  # the number of rows that were predicted correctly
    total: int  # the number of rows
    accuracy: float  # correct / total
    interval: tuple[float, float]  # Wilson's 95 % interval of the accuracy
    labels: tuple[str, ...]  # in the order of `classes` and `confusion`
    classes: tuple[ClassScore, ...]
    genres: tuple[GenreScore, ...]  # empty if no genres are known
    confusion: tuple[tuple[int, ...], ...]
    calibration_error: float | None = None  # expected, 0 to 1; None without probabilities
    mean_confidence: float | None = None  # of the predicted labels; None without probabilities

    def to_markdown(self) -> str:
        """Returns Markdown: the accuracy, then tables of classes, genres and errors."""
        parts = [
            f"Accuracy **{percent(self.accuracy)}** ({self.correct:,} of {self.total:,}; "
            f"95 % interval {percent_interval(self.interval)})"
        ]
        if self.calibration_error is not None and self.mean_confidence is not None:
            parts.append(
                f"Mean confidence {percent(self.mean_confidence)}, expected calibration error "
                f"{percent(self.calibration_error)} ({BINS} bins)"
            )
        classes = [
            [c.label, percent(c.precision), percent(c.recall), percent(c.f1), f"{c.support:,}"]
            for c in self.classes
        ]
        parts.append(markdown_table(["class", "precision", "recall", "F1", "rows"], classes))
        if self.genres:
            genres = [
                [g.genre, percent(g.accuracy), percent_interval(g.interval), f"{g.total:,}"]
                for g in self.genres
            ]
            parts.append(markdown_table(["genre", "accuracy", "95 % interval", "rows"], genres))
        confusion = [
            [label, *(f"{count:,}" for count in counts)]
            for label, counts in zip(self.labels, self.confusion, strict=True)
        ]
        parts.append(markdown_table(["gold \\ predicted", *self.labels], confusion))
        return "\n\n".join(parts) + "\n"


def accuracy_report(
    gold: Sequence[str],
    predicted: Sequence[str],
    labels: Sequence[str],
    genres: Sequence[str | None] | None = None,
    confidences: Sequence[float] | None = None,
) -> AccuracyReport:
    """Compares predicted labels with gold labels, row by row.

    Args:
        gold: the gold label of every row.
        predicted: the predicted label of every row.
        labels: the labels in the order of the report; may hold labels that no row has.
        genres: the genre of every row; a row whose genre is None counts in the total only.
        confidences: the probability of the predicted label of every row, for the calibration.

    Returns:
        Accuracy, scores per class and per genre, the confusion matrix, and the calibration.

    Raises:
        InputError: there are no rows, the lengths differ, a label is not in `labels`, or a
            confidence is not within 0 to 1.
        MissingExtraError: the extra `train` is not installed.

    Example:
        >>> report = accuracy_report(["yes", "no"], ["yes", "yes"], ["yes", "no"])
        >>> report.accuracy
        0.5
    """
    names = tuple(labels)
    if len(set(names)) < max(len(names), 2):
        raise InputError(f"labels must name 2 classes or more, each once: {dict(Counter(names))}")
    columns = {"predicted labels": predicted, "genres": genres, "confidences": confidences}
    for name, values in columns.items():
        if values is not None and len(values) != len(gold):
            raise InputError(
                f"{len(gold)} gold labels and {len(values)} {name}; expected one of each per row"
            )
    if not gold:
        raise InputError("no rows: the accuracy of nothing is not defined")
    gold_indices = _indices("gold", gold, names)
    predicted_indices = _indices("predicted", predicted, names)
    with require_extra("An accuracy report", "train"):
        from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

    # Indices instead of names: NumPy would cut some strings (a trailing NUL), and ints are faster.
    rows = {"y_true": gold_indices, "y_pred": predicted_indices, "labels": list(range(len(names)))}
    scores = precision_recall_fscore_support(**rows, zero_division=0)
    hits = [g == p for g, p in zip(gold_indices, predicted_indices, strict=True)]
    by_genre: dict[str, list[bool]] = {}
    for hit, genre in zip(hits, genres or (), strict=False):
        if genre is not None:
            by_genre.setdefault(genre, []).append(hit)
    return AccuracyReport(
        **_accuracy(hits),
        labels=names,
        classes=tuple(
            ClassScore(label, float(precision), float(recall), float(f1), int(support))
            for label, precision, recall, f1, support in zip(names, *scores, strict=True)
        ),
        genres=tuple(GenreScore(name, **_accuracy(by_genre[name])) for name in sorted(by_genre)),
        confusion=tuple(tuple(map(int, counts)) for counts in confusion_matrix(**rows)),
        calibration_error=None if confidences is None else calibration_error(confidences, hits),
        mean_confidence=None if confidences is None else float(np.mean(confidences)),
    )


def _indices(side: str, labels: Sequence[str], names: Sequence[str]) -> list[int]:
    index = {label: at for at, label in enumerate(names)}
    for row, label in enumerate(labels):
        if label not in index:
            raise InputError(
                f"{side} label of row {row + 1}: {unknown_name('label', label, index)}"
            )
    return [index[label] for label in labels]


def _accuracy(hits: Sequence[bool]) -> dict[str, Any]:
    correct, total = sum(hits), len(hits)
    interval = accuracy_interval(correct, total)
    return {"correct": correct, "total": total, "accuracy": correct / total, "interval": interval}


def accuracy_interval(correct: int, total: int) -> tuple[float, float]:
    """Returns Wilson's 95 % interval of the accuracy correct / total."""
    with require_extra("A confidence interval", "train"):
        from scipy.stats import binomtest

    limits = binomtest(correct, total).proportion_ci(CONFIDENCE, method="wilson")
    return float(limits.low), float(limits.high)


def calibration_error(confidences: ArrayLike, correct: ArrayLike, bins: int = BINS) -> float:
    """Returns the expected calibration error (Guo et al., ICML 2017): the mean distance between the
    probabilities of predicted labels (rows,) and whether they are right (rows,), over `bins` of
    equal width; bin i of n has the probabilities above i / n, up to and with (i + 1) / n."""
    sure, right = np.asarray(confidences, np.float64), np.asarray(correct, np.float64)
    if not ((sure >= 0) & (sure <= 1)).all():  # also refuses NaN
        raise InputError("a confidence is not within 0 to 1")
    limits = np.arange(1, bins) / bins  # the inner limits of the bins
    places = np.searchsorted(limits, sure, side="left")  # (rows,)
    # The number of rows cancels: share of a bin times the distance of its two means.
    distances = np.bincount(places, weights=right - sure, minlength=bins)  # (bins,)
    return float(np.abs(distances).sum() / len(sure))


@dataclass(frozen=True)
class Comparison(Report):
    """Two models, A and B, on the same rows: the paper's one-tailed paired t-test on which rows
    each has right, and McNemar's exact test, which is valid for few rows too.

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
    rows_a, rows_b = (list(zip(rows.ids, rows.gold, strict=True)) for rows in (a, b))
    same = "both must hold the same rows in the same order"
    if len(rows_a) != len(rows_b):
        same = f"A has {len(rows_a)} rows and B has {len(rows_b)}; {same}"
    for row, (one, other) in enumerate(zip(rows_a, rows_b, strict=False)):
        where = f"row {row + 1} (line {row + 2} of the files) has id {one[0]!r}"
        if one != other:
            kinds = f"and gold {one[1]!r} in A, id {other[0]!r} and gold {other[1]!r} in B"
            raise InputError(f"{where} {kinds}; {same}")
        if one[1] is None:
            raise InputError(f"{where} and no gold label: nothing to compare with")
    if len(rows_a) != len(rows_b):
        raise InputError(same)
    right_a, right_b = (np.fromiter(map(eq, x.gold, x.predicted), np.float64) for x in (a, b))
    return compare_correct(right_a, right_b)


def compare_correct(right_a: Rows, right_b: Rows) -> Comparison:
    """Tests whether A is better than B from which rows each has right: 1 or 0, (rows,)."""
    if len(right_a) != len(right_b) or len(right_a) < 2:
        raise InputError(
            f"a comparison needs at least 2 rows, as many of A as of B; got {len(right_a)} and "
            f"{len(right_b)}"
        )
    with require_extra("A significance test", "train"):
        from scipy.stats import binomtest

    only_a, only_b = int(np.sum(right_a > right_b)), int(np.sum(right_b > right_a))
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
        mcnemar_p_value=float(binomtest(only_a, only_a + only_b or 1).pvalue),
    )


def paired_t_test(right_a: Rows, right_b: Rows) -> tuple[float | None, float, tuple[float, float]]:
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
