"""Accuracy with its confidence interval: in all, per class, per genre, and who is taken for whom.

The paper's tables give one accuracy a data set; the interval says how far a second test set of the
same size would move it (about ±0.7 points on SNLI's 9,824 pairs).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from genpool.errors import InputError, unknown_name
from genpool.evaluation._extra import train_extra
from genpool.evaluation._markdown import markdown_table, percent, percent_interval

CONFIDENCE = 0.95


@dataclass(frozen=True)
class ClassScore:
    """One label. A score whose denominator is zero (a label never predicted) is 0."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class GenreScore:
    """The accuracy on the rows of one genre, with its interval."""

    genre: str
    correct: int
    total: int
    accuracy: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class AccuracyReport:
    """How often the predicted label is the gold one.

    `interval` is Wilson's 95 % interval. `confusion[i][j]` counts the rows whose gold label is
    `labels[i]` and whose predicted label is `labels[j]`. `genres` is empty where none was given.
    """

    correct: int
    total: int
    accuracy: float
    interval: tuple[float, float]
    labels: tuple[str, ...]
    classes: tuple[ClassScore, ...]
    genres: tuple[GenreScore, ...]
    confusion: tuple[tuple[int, ...], ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything as lists, strings and numbers, ready for JSON."""
        return {
            "correct": self.correct,
            "total": self.total,
            "accuracy": self.accuracy,
            "interval": list(self.interval),
            "labels": list(self.labels),
            "classes": [asdict(score) for score in self.classes],
            "genres": [
                {**asdict(score), "interval": list(score.interval)} for score in self.genres
            ],
            "confusion": [list(row) for row in self.confusion],
        }

    def to_markdown(self) -> str:
        """The report as Markdown: the accuracy, then a table each for classes, genres, errors."""
        parts = [
            f"Accuracy **{percent(self.accuracy)}** ({self.correct:,} of {self.total:,}; "
            f"95 % interval {percent_interval(self.interval)})",
            markdown_table(
                ["class", "precision", "recall", "F1", "rows"],
                [
                    [
                        c.label,
                        percent(c.precision),
                        percent(c.recall),
                        percent(c.f1),
                        f"{c.support:,}",
                    ]
                    for c in self.classes
                ],
            ),
        ]
        if self.genres:
            rows = [
                [g.genre, percent(g.accuracy), percent_interval(g.interval), f"{g.total:,}"]
                for g in self.genres
            ]
            parts.append(markdown_table(["genre", "accuracy", "95 % interval", "rows"], rows))
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
) -> AccuracyReport:
    """Compare predicted labels with gold ones, row by row.

    `labels` gives the order of classes and of the confusion matrix, and may hold labels that no
    row has. Rows whose genre is None count in the total and in no genre.
    """
    names = _checked_labels(labels)
    place = {label: index for index, label in enumerate(names)}
    _check_lengths(gold, predicted, genres)
    gold_places = _places("gold", gold, place)
    predicted_places = _places("predicted", predicted, place)
    with train_extra("An accuracy report"):
        from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

    # Places instead of names: NumPy would cut some strings (a trailing NUL), and ints are faster.
    everything = list(range(len(names)))
    precision, recall, f1, support = precision_recall_fscore_support(
        gold_places, predicted_places, labels=everything, zero_division=0
    )
    confusion = confusion_matrix(gold_places, predicted_places, labels=everything)
    hits = [g == p for g, p in zip(gold_places, predicted_places, strict=True)]
    return AccuracyReport(
        correct=sum(hits),
        total=len(hits),
        accuracy=sum(hits) / len(hits),
        interval=_interval(sum(hits), len(hits)),
        labels=names,
        classes=tuple(
            ClassScore(label, float(precision[i]), float(recall[i]), float(f1[i]), int(support[i]))
            for i, label in enumerate(names)
        ),
        genres=() if genres is None else _genre_scores(hits, genres),
        confusion=tuple(tuple(int(count) for count in row) for row in confusion),
    )


def _genre_scores(hits: Sequence[bool], genres: Sequence[str | None]) -> tuple[GenreScore, ...]:
    by_genre: dict[str, list[bool]] = {}
    for hit, genre in zip(hits, genres, strict=True):
        if genre is not None:
            by_genre.setdefault(genre, []).append(hit)
    return tuple(
        GenreScore(genre, sum(own), len(own), sum(own) / len(own), _interval(sum(own), len(own)))
        for genre, own in sorted(by_genre.items())
    )


def _interval(correct: int, total: int) -> tuple[float, float]:
    with train_extra("A confidence interval"):
        from scipy.stats import binomtest

    found = binomtest(correct, total).proportion_ci(CONFIDENCE, method="wilson")
    return float(found.low), float(found.high)


def _checked_labels(labels: Sequence[str]) -> tuple[str, ...]:
    names = tuple(labels)
    if len(names) < 2:
        raise InputError(f"labels has to name at least 2 classes, not {len(names)}: {names!r}")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"labels holds {name!r} {names.count(name)} times; name each once")
    return names


def _check_lengths(
    gold: Sequence[str], predicted: Sequence[str], genres: Sequence[str | None] | None
) -> None:
    for name, given in (("predicted labels", predicted), ("genres", genres)):
        if given is not None and len(given) != len(gold):
            raise InputError(f"{len(gold)} gold labels and {len(given)} {name}: one each a row")
    if not gold:
        raise InputError("no rows: the accuracy of nothing is not defined")


def _places(side: str, given: Sequence[str], place: dict[str, int]) -> list[int]:
    for row, label in enumerate(given):
        if label not in place:
            raise InputError(
                f"{side} label of row {row + 1}: {unknown_name('label', label, place)}"
            )
    return [place[label] for label in given]
