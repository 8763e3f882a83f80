"""Accuracy with its confidence interval: overall, per class and genre; confusion, calibration.

The tables of the paper have one accuracy per data set; the interval shows how far a second test set
of the same size would move it (about ±0.7 points on SNLI's 9,824 pairs).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from genpool.disk.files import markdown_table, percent, percent_interval
from genpool.errors import InputError, require_extra, unknown_name

CONFIDENCE = 0.95
#: bins of the expected calibration error
BINS = 15


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
class AccuracyReport:
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

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as tuples, strings and numbers, ready for JSON."""
        return asdict(self)

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
    if len(names) < 2:
        raise InputError(f"labels must name at least 2 classes, not {len(names)}: {names!r}")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"labels holds {name!r} {names.count(name)} times; name it once")
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
    """Compares the probabilities of predicted labels (rows,) with whether they are right (rows,).

    Of the rows predicted with 80 %, 80 % should be right. The expected calibration error is the
    mean distance between the two, over bins of equal width of the probability (Guo et al., On
    Calibration of Modern Neural Networks, ICML 2017). Bin i of n has the probabilities above i / n,
    up to and with (i + 1) / n.
    """
    sure, right = np.asarray(confidences, np.float64), np.asarray(correct, np.float64)
    if not ((sure >= 0) & (sure <= 1)).all():  # also refuses NaN
        raise InputError("a confidence is not within 0 to 1")
    limits = np.arange(1, bins) / bins  # the inner limits of the bins
    places = np.searchsorted(limits, sure, side="left")  # (rows,)
    # The number of rows cancels: share of a bin times the distance of its two means.
    distances = np.bincount(places, weights=right - sure, minlength=bins)  # (bins,)
    return float(np.abs(distances).sum() / len(sure))
