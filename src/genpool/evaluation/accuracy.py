"""Accuracy with its confidence interval: overall, per class and genre; confusion, calibration.

The tables of the paper have one accuracy per data set; the interval shows how far a second test set
of the same size would move it (about ±0.7 points on SNLI's 9,824 pairs).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from genpool.disk.markdown import markdown_table, percent, percent_interval
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

    Args:
        correct: the number of rows that were predicted correctly.
        total: the number of rows.
        accuracy: correct / total.
        interval: Wilson's 95 % interval of the accuracy.
        labels: the labels, in the order of `classes` and `confusion`.
        classes: precision, recall and F1 of each label.
        genres: the accuracy of each genre; empty if no genres are known.
        confusion: `confusion[i][j]` counts the rows whose gold label is `labels[i]` and whose
            predicted label is `labels[j]`.
        calibration_error: the expected calibration error, 0 to 1. Default: None, the probabilities
            are not known.
        mean_confidence: the mean probability of the predicted labels. Default: None, as above.
    """

    correct: int
    total: int
    accuracy: float
    interval: tuple[float, float]
    labels: tuple[str, ...]
    classes: tuple[ClassScore, ...]
    genres: tuple[GenreScore, ...]
    confusion: tuple[tuple[int, ...], ...]
    calibration_error: float | None = None
    mean_confidence: float | None = None

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
        genres: the genre of every row; a row whose genre is None counts in the total only. None
            (default): no genres are known.
        confidences: the probability of the predicted label of every row. None (default): they are
            not known, and neither is the calibration.

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
    index = {label: at for at, label in enumerate(names)}
    gold_indices = _indices("gold", gold, index)
    predicted_indices = _indices("predicted", predicted, index)
    with require_extra("An accuracy report", "train"):
        from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

    # Indices instead of names: NumPy would cut some strings (a trailing NUL), and ints are faster.
    all_indices = list(range(len(names)))
    precision, recall, f1, support = precision_recall_fscore_support(
        gold_indices, predicted_indices, labels=all_indices, zero_division=0
    )
    confusion = confusion_matrix(gold_indices, predicted_indices, labels=all_indices)
    hits = [g == p for g, p in zip(gold_indices, predicted_indices, strict=True)]
    calibration = None if confidences is None else calibration_scores(confidences, hits)
    return AccuracyReport(
        correct=sum(hits),
        total=len(hits),
        accuracy=sum(hits) / len(hits),
        interval=accuracy_interval(sum(hits), len(hits)),
        labels=names,
        classes=tuple(
            ClassScore(label, float(precision[i]), float(recall[i]), float(f1[i]), int(support[i]))
            for i, label in enumerate(names)
        ),
        genres=() if genres is None else _genre_scores(hits, genres),
        confusion=tuple(tuple(int(count) for count in row) for row in confusion),
        calibration_error=calibration.error if calibration else None,
        mean_confidence=calibration.mean_confidence if calibration else None,
    )


def _genre_scores(hits: Sequence[bool], genres: Sequence[str | None]) -> tuple[GenreScore, ...]:
    by_genre: dict[str, list[bool]] = {}
    for hit, genre in zip(hits, genres, strict=True):
        if genre is not None:
            by_genre.setdefault(genre, []).append(hit)
    counts = [(genre, sum(rows), len(rows)) for genre, rows in sorted(by_genre.items())]
    return tuple(
        GenreScore(genre, correct, total, correct / total, accuracy_interval(correct, total))
        for genre, correct, total in counts
    )


def accuracy_interval(correct: int, total: int) -> tuple[float, float]:
    """Returns Wilson's 95 % interval of the accuracy correct / total."""
    with require_extra("A confidence interval", "train"):
        from scipy.stats import binomtest

    limits = binomtest(correct, total).proportion_ci(CONFIDENCE, method="wilson")
    return float(limits.low), float(limits.high)


def _indices(side: str, labels: Sequence[str], index: dict[str, int]) -> list[int]:
    for row, label in enumerate(labels):
        if label not in index:
            raise InputError(
                f"{side} label of row {row + 1}: {unknown_name('label', label, index)}"
            )
    return [index[label] for label in labels]


class CalibrationScores(NamedTuple):
    """How sure a classifier is, and how far that is from how often it is right."""

    error: float  # the expected calibration error, 0 to 1; 0 is best
    mean_confidence: float  # the mean probability of the predicted labels


def calibration_scores(
    confidences: ArrayLike, correct: ArrayLike, bins: int = BINS
) -> CalibrationScores:
    """Compares the probabilities of predicted labels (rows,) with whether they are right (rows,).

    Of the rows predicted with 80 %, 80 % should be right. The expected calibration error is the
    mean distance between the two, over bins of equal width of the probability (Guo et al., On
    Calibration of Modern Neural Networks, ICML 2017). Bin i of n has the probabilities above i / n,
    up to and with (i + 1) / n.
    """
    sure, right = np.asarray(confidences, np.float64), np.asarray(correct, np.float64)
    if sure.ndim != 1 or sure.shape != right.shape:
        raise InputError(
            f"confidences have the shape {sure.shape} and correct {right.shape}; expected one of "
            "each per row."
        )
    if not len(sure):
        raise InputError("no rows: the calibration of nothing is not defined")
    if not ((sure >= 0) & (sure <= 1)).all():  # also refuses NaN
        raise InputError("a confidence is not within 0 to 1")
    limits = np.arange(1, bins) / bins  # the inner limits of the bins
    places = np.searchsorted(limits, sure, side="left")  # (rows,)
    # The number of rows cancels: share of a bin times the distance of its two means.
    distances = np.bincount(places, weights=right - sure, minlength=bins)  # (bins,)
    return CalibrationScores(float(np.abs(distances).sum() / len(sure)), float(sure.mean()))
