"""The rows of a reader as splits with targets, labels by name or scores, and notes about them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from typing import NamedTuple

import numpy as np

from genpool.data.reader import Reader
from genpool.errors import DataError
from genpool.training.dataset import Split, SplitWords, WordIds, read_split
from genpool.training.objective import LabelObjective, Objective, ScoreObjective

#: below this number of rows, new weights learn little: an encoder that was trained before helps
FEW_ROWS_FOR_SCRATCH = 3000
#: labels that a note names
MAX_NAMED_LABELS = 5


class TrainingRows(NamedTuple):
    """The training rows, the labels in the order of their ids, and what is learned."""

    split: Split
    labels: tuple[str, ...]
    objective: Objective


class RowReader(ABC):
    """Reads the rows of one `data.task`.

    Args:
        reader: the data set.
        word_ids: receives the words.
        split_words: splits a sentence into words.
    """

    def __init__(self, reader: Reader, word_ids: WordIds, split_words: SplitWords) -> None:
        self.reader, self.word_ids, self.split_words = reader, word_ids, split_words

    @abstractmethod
    def read_train(self, name: str) -> TrainingRows:
        """Returns the training rows, all of which have a target."""

    @abstractmethod
    def read_scored(self, name: str, labels: tuple[str, ...]) -> Split:
        """Returns a split that is scored or predicted; the label of a row may be missing (-1)."""


class LabelRows(RowReader):
    """Rows with labels."""

    def read_train(self, name: str) -> TrainingRows:
        reader = self.reader
        seen: dict[str, int] = {label: at for at, label in enumerate(reader.labels or ())}

        def label_id(label: str | None) -> int:
            if label is None:
                problem = "a training row has no label; to learn a column of scores: --task score"
                raise DataError(problem, reader.place)
            return seen.setdefault(label, len(seen))

        train = read_split(reader.read(name), self.word_ids, self.split_words, label_id)
        _require_rows(train, reader)
        if reader.labels is not None:
            return TrainingRows(train, tuple(reader.labels), LabelObjective())
        labels = tuple(sorted(seen))
        if len(labels) < 2:
            raise DataError(
                f"all training rows have the label {labels[0]!r}; expected two labels or more",
                reader.place,
            )
        order = {seen[label]: at for at, label in enumerate(labels)}
        train.labels = np.array([order[label] for label in train.labels], dtype=np.int64)
        return TrainingRows(train, labels, LabelObjective())

    def read_scored(self, name: str, labels: tuple[str, ...]) -> Split:
        def label_id(label: str | None) -> int:
            if label is not None and label not in labels:
                raise DataError(
                    f"the label {label!r} appears in {name!r} but in no training row; "
                    f"training has {', '.join(labels)}",
                    self.reader.place,
                )
            return -1 if label is None else labels.index(label)

        return read_split(self.reader.read(name), self.word_ids, self.split_words, label_id)


class ScoreRows(RowReader):
    """Rows with scores; the label of a row is the nearest point of the range."""

    def read_train(self, name: str) -> TrainingRows:
        train = self._read(name)
        _require_rows(train, self.reader)
        if np.isnan(train.scores).any():
            problem = "a training row has no score; name the column: --score NAME"
            raise DataError(problem, self.reader.place)
        objective = ScoreObjective.from_scores(train.scores)
        train.labels = objective.nearest(train.scores)
        return TrainingRows(train, objective.labels, objective)

    def read_scored(self, name: str, labels: tuple[str, ...]) -> Split:
        split = self._read(name)
        objective, known = (
            ScoreObjective([float(label) for label in labels]),
            ~np.isnan(split.scores),
        )
        split.labels = np.full(len(split), -1)
        split.labels[known] = objective.nearest(split.scores[known])
        return split

    def _read(self, name: str) -> Split:
        rows = self.reader.read(name)
        split = read_split(rows, self.word_ids, self.split_words, lambda label: 0)
        if not len(split.scores):
            split.scores = np.full(len(split), np.nan)
        return split


#: by `data.task`
ROW_READERS: dict[str, type[RowReader]] = {"label": LabelRows, "score": ScoreRows}


def _require_rows(train: Split, reader: Reader) -> None:
    if not len(train):
        raise DataError("the training set is empty; expected at least one row", reader.place)


def data_notes(train: Split, labels: tuple[str, ...], from_scratch: bool) -> dict[str, str]:
    """Returns notes on labels with a single row, rows that contradict each other, and few rows."""
    notes = {}
    counts = Counter(train.labels.tolist())
    single = [label for number, label in enumerate(labels) if counts[number] == 1]
    if single:
        named = ", ".join(map(repr, single[:MAX_NAMED_LABELS]))
        dots = ", ..." if len(single) > MAX_NAMED_LABELS else ""
        notes["labels with one row"] = f"{named}{dots}: too few to learn, and none is held out"
    texts, rows = _contradictions(train)
    if texts:
        notes["duplicate texts"] = f"{texts:,} with different labels ({rows:,} rows)"
    if from_scratch and len(train) < FEW_ROWS_FOR_SCRATCH:
        notes["warning"] = (
            f"{len(train):,} training rows are few for new weights; start from a model that knows "
            "words already: --start embedded (recipes texts and pairs)"
        )
    return notes


def _contradictions(train: Split) -> tuple[int, int]:
    """Returns how many texts occur with different labels, and in how many rows."""
    labels_of: dict[tuple[bytes, ...], Counter[int]] = defaultdict(Counter)
    for row, label in enumerate(train.labels.tolist()):
        sides = range(row * train.sides, (row + 1) * train.sides)
        labels_of[tuple(train.sentence(side).tobytes() for side in sides)][label] += 1
    several = [counts for counts in labels_of.values() if len(counts) > 1]
    return len(several), sum(counts.total() for counts in several)
