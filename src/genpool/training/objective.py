"""What a run learns: the label of each row, or its score.

A score is learned as a distribution over evenly spaced points of its range (Tai et al. 2015): the
target has all its weight on the two points around the score, and the predicted score is the mean of
the predicted distribution. So a model of scores is a classifier whose labels are numbers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genpool.disk.markdown import percent
from genpool.errors import DataError
from genpool.evaluation import AccuracyReport, accuracy_report
from genpool.evaluation.score_report import ScoreReport
from genpool.training.dataset import Split

Probabilities = NDArray[np.float32]
#: points of a range that is not one of a few whole numbers
DEFAULT_POINTS = 6
#: the widest range whose points are whole numbers
MAX_WHOLE_RANGE = 10


class Objective(ABC):
    """How targets are made and how dev is scored.

    Attributes:
        metric: the name in metrics.jsonl of the value that the best model has the highest of.
        title: the same for people.
    """

    metric: ClassVar[str]
    title: ClassVar[str]
    #: whether a prediction is right or wrong, so that there is a confusion matrix
    has_classes: ClassVar[bool] = True

    @abstractmethod
    def targets(self, split: Split, rows: NDArray[np.int64]) -> Tensor:
        """Returns what `cross_entropy` compares the logits of these rows with."""

    @abstractmethod
    def dev_metrics(
        self,
        dev: Split,
        predict: Callable[[range], Probabilities],
        process: tuple[int, int],
        total: Callable[[float], float],
    ) -> dict[str, float]:
        """Returns the metrics of the dev set, the same in all processes.

        Args:
            dev: the rows.
            predict: returns the probabilities (rows, labels) of some of them.
            process: the index of this process, and the number of processes.
            total: returns the sum of a value over all processes.
        """

    @abstractmethod
    def report(
        self, split: Split, probabilities: Probabilities, labels: tuple[str, ...]
    ) -> AccuracyReport | ScoreReport:
        """Returns the scores of a split whose rows all have a target.

        Args:
            split: the rows.
            probabilities: (rows, labels), those of the model.
            labels: the labels of the model.
        """

    @abstractmethod
    def standard_error(self, value: float, rows: int) -> float:
        """Returns the standard error of a value of `metric` measured on a number of rows."""

    @abstractmethod
    def format(self, value: float) -> str:
        """Returns a value of `metric` for people."""


class LabelObjective(Objective):
    """One label per row; the best model has the highest accuracy on dev."""

    metric = "dev_accuracy"
    title = "accuracy"

    def targets(self, split: Split, rows: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(split.labels[rows])  # (rows,)

    def dev_metrics(
        self,
        dev: Split,
        predict: Callable[[range], Probabilities],
        process: tuple[int, int],
        total: Callable[[float], float],
    ) -> dict[str, float]:
        rows = range(process[0], len(dev), process[1])  # every process scores a share
        correct = (predict(rows).argmax(axis=1) == dev.labels[rows.start :: rows.step]).sum()
        return {self.metric: total(float(correct)) / len(dev)}

    def report(
        self, split: Split, probabilities: Probabilities, labels: tuple[str, ...]
    ) -> AccuracyReport:
        gold = [labels[label] for label in split.labels]
        predicted = [labels[label] for label in probabilities.argmax(axis=1)]
        genres = split.genres if any(split.genres) else None
        return accuracy_report(gold, predicted, labels, genres, probabilities.max(axis=1).tolist())

    def standard_error(self, value: float, rows: int) -> float:
        return math.sqrt(value * (1 - value) / rows)

    def format(self, value: float) -> str:
        return percent(value)


class ScoreObjective(Objective):
    """One score per row; the best model has the highest Spearman correlation on dev.

    Args:
        points: the scores that the labels of the model stand for, evenly spaced, ascending.
    """

    metric = "dev_spearman"
    title = "Spearman"
    has_classes = False

    def __init__(self, points: Sequence[float]) -> None:
        self.points = np.asarray(points, dtype=np.float64)  # (labels,)

    @classmethod
    def from_scores(cls, scores: NDArray[np.float64]) -> ScoreObjective:
        """Returns the objective whose points cover the scores of the training rows.

        Raises:
            DataError: all scores are equal.
        """
        low, high = float(scores.min()), float(scores.max())
        if low == high:
            raise DataError(f"all training rows have the score {low:g}; expected different ones")
        whole_low, whole_high = math.floor(low), math.ceil(high)
        if high - low >= 1 and whole_high - whole_low <= MAX_WHOLE_RANGE:
            count = whole_high - whole_low + 1
            return cls(np.linspace(whole_low, whole_high, max(count, 3)).tolist())
        return cls(np.linspace(low, high, DEFAULT_POINTS).tolist())

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the model: the points as text, from which they can be read again."""
        return tuple(f"{point!r}".removesuffix(".0") for point in self.points.tolist())

    def nearest(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Returns the index of the nearest point to each score."""
        nearest: NDArray[np.int64] = np.abs(scores[:, None] - self.points).argmin(axis=1)
        return nearest

    def distribution(self, scores: NDArray[np.float64]) -> NDArray[np.float32]:
        """Returns the distributions (rows, labels) whose means are the scores."""
        step = self.points[1] - self.points[0]
        place = np.clip((scores - self.points[0]) / step, 0, len(self.points) - 1)  # (rows,)
        distance = np.abs(place[:, None] - np.arange(len(self.points)))  # (rows, labels)
        weights: NDArray[np.float32] = np.maximum(0.0, 1 - distance).astype(np.float32)
        return weights

    def targets(self, split: Split, rows: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(self.distribution(split.scores[rows]))  # (rows, labels)

    def dev_metrics(
        self,
        dev: Split,
        predict: Callable[[range], Probabilities],
        process: tuple[int, int],
        total: Callable[[float], float],
    ) -> dict[str, float]:
        # A correlation is not a sum over rows: every process scores all of them.
        report = self.report(dev, predict(range(len(dev))), self.labels)
        return {"dev_pearson": report.pearson, self.metric: report.spearman}

    def report(
        self, split: Split, probabilities: Probabilities, labels: tuple[str, ...]
    ) -> ScoreReport:
        predicted = probabilities.astype(np.float64) @ self.points  # (rows,)
        return ScoreReport.from_scores(split.scores, predicted)

    def standard_error(self, value: float, rows: int) -> float:
        return (1 - value**2) / math.sqrt(max(rows - 1, 1))

    def format(self, value: float) -> str:
        return f"{value:.4f}"
