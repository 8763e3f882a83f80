"""What a run learns, labels or scores, and the terms of its loss.

A score is learned as a distribution over evenly spaced points of its range (Tai et al. 2015): the
target has all its weight on the two points around the score, and the predicted score is the mean of
the predicted distribution. So a model of scores is a classifier whose labels are numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from genpool.data.reader import Reader
from genpool.disk.files import percent
from genpool.errors import DataError
from genpool.evaluation import AccuracyReport, accuracy_report
from genpool.evaluation.similarity import ScoreReport
from genpool.model import Classified, Classifier
from genpool.pooling.penalties import Penalty
from genpool.training.dataset import Split

Probabilities = NDArray[np.float32]
#: points of a range that is not one of a few whole numbers
DEFAULT_POINTS = 6
#: the widest range whose points are whole numbers
MAX_WHOLE_RANGE = 10


class LabelObjective:
    """One label per row; the best model has the highest accuracy on dev.

    `metric` names in metrics.jsonl what the best model has the highest of, `title` for people.
    """

    metric, title = "dev_accuracy", "accuracy"
    has_classes = True  # a prediction is right or wrong

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)

    @classmethod
    def from_train(cls, train: Split, reader: Reader) -> Self:
        """Returns what is learned from the training rows, all of which must have a target."""
        if None in train.names:
            problem = "a training row has no label; to learn a column of scores: --task score"
            raise DataError(problem, reader.place)
        labels = reader.labels or sorted(name for name in set(train.names) if name is not None)
        if len(labels) < 2:
            raise DataError(
                f"all training rows have the label {labels[0]!r}; expected two labels or more",
                reader.place,
            )
        return cls(labels)

    def set_targets(self, split: Split, name: str = "", place: str | Path | None = None) -> None:
        """Sets the label ids of a split, -1 for a row without a target, and its targets."""
        ids: dict[str | None, int] = {label: at for at, label in enumerate(self.labels)}
        ids[None] = -1
        if unknown := [label for label in split.names if label not in ids]:
            raise DataError(
                f"the label {unknown[0]!r} appears in {name!r} but in no training row; "
                f"training has {', '.join(self.labels)}",
                place,
            )
        split.labels = np.array([ids[label] for label in split.names], dtype=np.int64)
        split.targets = split.labels

    def dev_metrics(self, dev: Split, probabilities: Probabilities) -> dict[str, float]:
        """Returns the metrics of the dev set; probabilities are (rows, labels)."""
        return {self.metric: float((probabilities.argmax(axis=1) == dev.labels).mean())}

    def report(self, split: Split, probabilities: Probabilities) -> AccuracyReport:
        """Returns the scores of a split whose rows all have a target."""
        gold = [self.labels[label] for label in split.labels]
        predicted = [self.labels[label] for label in probabilities.argmax(axis=1)]
        genres = split.genres if any(split.genres) else None
        confidences = probabilities.max(axis=1).tolist()
        return accuracy_report(gold, predicted, self.labels, genres, confidences)

    def standard_error(self, value: float, rows: int) -> float:
        """Returns the standard error of a value of `metric` measured on a number of rows."""
        return math.sqrt(value * (1 - value) / rows)

    def format(self, value: float) -> str:
        """Returns a value of `metric` for people."""
        return percent(value)


class ScoreObjective:
    """One score per row, with the methods of `LabelObjective`.

    The labels of the model stand for evenly spaced points; the label of a row is the nearest one.
    """

    metric, title = "dev_spearman", "Spearman"
    has_classes = False

    def __init__(self, points: Sequence[float]) -> None:
        self.points = np.asarray(points, dtype=np.float64)  # (labels,)
        # As text from which they can be read again.
        self.labels = tuple(f"{point!r}".removesuffix(".0") for point in self.points.tolist())

    @classmethod
    def from_train(cls, train: Split, reader: Reader) -> Self:
        if np.isnan(train.scores).any():
            problem = "a training row has no score; name the column: --score NAME"
            raise DataError(problem, reader.place)
        return cls.from_scores(train.scores)

    def set_targets(self, split: Split, name: str = "", place: str | Path | None = None) -> None:
        nearest = np.abs(split.scores[:, None] - self.points).argmin(axis=1)  # (rows,)
        split.labels = np.where(np.isnan(split.scores), -1, nearest)
        split.targets = self.distribution(split.scores)  # (rows, labels)

    @classmethod
    def from_scores(cls, scores: NDArray[np.float64]) -> Self:
        """Returns the objective whose points cover the scores of the training rows."""
        low, high = float(scores.min()), float(scores.max())
        if low == high:
            raise DataError(f"all training rows have the score {low:g}; expected different ones")
        whole_low, whole_high = math.floor(low), math.ceil(high)
        if high - low >= 1 and whole_high - whole_low <= MAX_WHOLE_RANGE:
            count = whole_high - whole_low + 1
            return cls(np.linspace(whole_low, whole_high, max(count, 3)).tolist())
        return cls(np.linspace(low, high, DEFAULT_POINTS).tolist())

    def distribution(self, scores: NDArray[np.float64]) -> NDArray[np.float32]:
        """Returns the distributions (rows, labels) whose means are the scores."""
        step = self.points[1] - self.points[0]
        place = np.clip((scores - self.points[0]) / step, 0, len(self.points) - 1)  # (rows,)
        distance = np.abs(place[:, None] - np.arange(len(self.points)))  # (rows, labels)
        weights: NDArray[np.float32] = np.maximum(0.0, 1 - distance).astype(np.float32)
        return weights

    def dev_metrics(self, dev: Split, probabilities: Probabilities) -> dict[str, float]:
        report = self.report(dev, probabilities)
        return {"dev_pearson": report.pearson, self.metric: report.spearman}

    def report(self, split: Split, probabilities: Probabilities) -> ScoreReport:
        predicted = probabilities.astype(np.float64) @ self.points  # (rows,)
        return ScoreReport.from_scores(split.scores, predicted)

    def standard_error(self, value: float, rows: int) -> float:
        return (1 - value**2) / math.sqrt(max(rows - 1, 1))

    def format(self, value: float) -> str:
        return f"{value:.4f}"


Objective = LabelObjective | ScoreObjective
#: by `data.task`
OBJECTIVES: dict[str, type[Objective]] = {"label": LabelObjective, "score": ScoreObjective}


# --- Terms of the loss ---------------------------------------------------------------------------


@dataclass(frozen=True)
class LossTerm:
    """One term that is added to the cross-entropy.

    A mean over the batch is `per_example`; a term on parameters is the same in all processes.
    """

    value: Tensor  # scalar, its weight included
    per_example: bool = True
    penalty: Penalty | None = None  # the distances and active hinges behind it, if it is one


class ExtraLoss(Protocol):
    """Computes extra terms of the loss from the output of a training step.

    `losses` are the cross-entropies (examples,), `targets` label ids (examples,) or distributions
    (examples, labels). `needs_weights` says whether `output.pooled.weights` is read, which costs a
    padded tensor.
    """

    @property
    def needs_weights(self) -> bool: ...

    def __call__(
        self, model: Classifier, output: Classified, losses: Tensor, targets: Tensor
    ) -> Sequence[LossTerm]: ...


class EncoderLoss:
    """The term of an encoder with `has_extra_loss` as an extra loss of the training loop."""

    needs_weights = False

    def __call__(
        self, model: Classifier, output: Classified, losses: Tensor, targets: Tensor
    ) -> list[LossTerm]:
        term = model.encoder.encoder.extra_loss(-losses.detach())
        return [] if term is None else [LossTerm(term)]


@dataclass(frozen=True)
class ContrastiveLoss:
    """Draws rows of one label together, on the input of the classifier, which helps with few."""

    weight: float
    temperature: float
    needs_weights: ClassVar[bool] = False

    def __call__(
        self, model: Classifier, output: Classified, losses: Tensor, targets: Tensor
    ) -> list[LossTerm]:
        features = model.features(output.pooled.vector)  # (examples, features)
        loss = supervised_contrastive(features, targets, self.temperature)
        return [LossTerm(self.weight * loss)]


def supervised_contrastive(vectors: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Returns the mean loss over the rows that share their label with another row (a scalar).

    Khosla et al. 2020, Eq. 2: for row i the mean over the other rows p of its label of
    -log(exp(z_i z_p / T) / sum_{a != i} exp(z_i z_a / T)), z being the vectors (rows, dim) at
    length 1. 0 if no row shares its label with another.
    """
    units = functional.normalize(vectors.float(), dim=1)  # (rows, dim)
    itself = torch.eye(len(units), dtype=torch.bool, device=units.device)  # (rows, rows)
    # Not minus infinity: its product with a zero below would be NaN.
    cosines = (units @ units.T / temperature).masked_fill(itself, -1e9)  # (rows, rows)
    log_shares = cosines.log_softmax(dim=1)  # (rows, rows)
    same = (labels.unsqueeze(1) == labels) & ~itself  # (rows, rows)
    counts = same.sum(dim=1)  # (rows,)
    means = (log_shares * same).sum(dim=1) / counts.clamp(min=1)  # (rows,)
    return -means.sum() / (counts > 0).sum().clamp(min=1)
