"""What a run learns, labels or scores, and the loss of a step.

A score is learned as a distribution over evenly spaced points of its range (Tai et al. 2015): the
target has all its weight on the two points around the score, and the predicted score is the mean of
the predicted distribution. So a model of scores is a classifier whose labels are numbers.

The loss is the cross-entropy and a list of extra terms. An extra loss is a callable
`(model, output, losses, targets) -> terms`: the penalties on heads (`genpool.training.heads`), the
supervised contrastive loss, the term of an encoder whose choices have no gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
#: (name of a split, label -> its id) -> the split
ReadSplit = Callable[[str, Callable[[str | None], int]], Split]
#: points of a range that is not one of a few whole numbers
DEFAULT_POINTS = 6
#: the widest range whose points are whole numbers
MAX_WHOLE_RANGE = 10


class LabelObjective:
    """One label per row; the best model has the highest accuracy on dev.

    `metric` is the name in metrics.jsonl of the value that the best model has the highest of,
    `title` the same for people; `labels` are those of the model, in the order of their ids.
    """

    metric, title = "dev_accuracy", "accuracy"
    #: whether a prediction is right or wrong
    has_classes = True

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)

    @classmethod
    def read_train(cls, reader: Reader, read: ReadSplit, name: str) -> tuple[Split, Self]:
        """Returns the training rows, all of which have a target, and what is learned from them."""
        seen: dict[str, int] = {label: at for at, label in enumerate(reader.labels or ())}

        def label_id(label: str | None) -> int:
            if label is None:
                problem = "a training row has no label; to learn a column of scores: --task score"
                raise DataError(problem, reader.place)
            return seen.setdefault(label, len(seen))

        train = _require_rows(read(name, label_id), reader)
        if reader.labels is not None:
            return train, cls(reader.labels)
        labels = sorted(seen)
        if len(labels) < 2:
            raise DataError(
                f"all training rows have the label {labels[0]!r}; expected two labels or more",
                reader.place,
            )
        order = {seen[label]: at for at, label in enumerate(labels)}
        train.labels = np.array([order[label] for label in train.labels], dtype=np.int64)
        return train, cls(labels)

    def read_scored(self, reader: Reader, read: ReadSplit, name: str) -> Split:
        """Returns a split that is scored or predicted; the label of a row may be missing (-1)."""

        def label_id(label: str | None) -> int:
            if label is not None and label not in self.labels:
                raise DataError(
                    f"the label {label!r} appears in {name!r} but in no training row; "
                    f"training has {', '.join(self.labels)}",
                    reader.place,
                )
            return -1 if label is None else self.labels.index(label)

        return read(name, label_id)

    def targets(self, split: Split, rows: NDArray[np.int64]) -> Tensor:
        """Returns what `cross_entropy` compares the logits of these rows with."""
        return torch.from_numpy(split.labels[rows])  # (rows,)

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
    """One score per row, with the methods of `LabelObjective`; the best model has the highest
    Spearman correlation on dev.

    The points are the scores that the labels of the model stand for, evenly spaced, ascending; the
    label of a row is the nearest of them.
    """

    metric, title = "dev_spearman", "Spearman"
    has_classes = False

    def __init__(self, points: Sequence[float]) -> None:
        self.points = np.asarray(points, dtype=np.float64)  # (labels,)
        # As text from which they can be read again.
        self.labels = tuple(f"{point!r}".removesuffix(".0") for point in self.points.tolist())

    @classmethod
    def read_train(cls, reader: Reader, read: ReadSplit, name: str) -> tuple[Split, Self]:
        train = _require_rows(_read_scores(read, name), reader)
        if np.isnan(train.scores).any():
            problem = "a training row has no score; name the column: --score NAME"
            raise DataError(problem, reader.place)
        objective = cls.from_scores(train.scores)
        train.labels = objective.nearest(train.scores)
        return train, objective

    def read_scored(self, reader: Reader, read: ReadSplit, name: str) -> Split:
        split = _read_scores(read, name)
        known = ~np.isnan(split.scores)  # (rows,)
        split.labels = np.full(len(split), -1)
        split.labels[known] = self.nearest(split.scores[known])
        return split

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


def _read_scores(read: ReadSplit, name: str) -> Split:
    split = read(name, lambda label: 0)
    if not len(split.scores):
        split.scores = np.full(len(split), np.nan)
    return split


def _require_rows(train: Split, reader: Reader) -> Split:
    if not len(train):
        raise DataError("the training set is empty; expected at least one row", reader.place)
    return train


# --- The loss of a step --------------------------------------------------------------------------


@dataclass(frozen=True)
class LossTerm:
    """One term that is added to the cross-entropy.

    Attributes:
        value: scalar tensor, its weight included.
        per_example: True (default) for a mean over the examples of the batch, of which every
            process of a distributed run computes its share; False for a term on parameters, which
            is the same in all processes.
        penalty: the distances and active hinges behind a penalty, for its monitor; None for others.
    """

    value: Tensor
    per_example: bool = True
    penalty: Penalty | None = None


class ExtraLoss(Protocol):
    """Computes extra terms of the loss from the output of a training step."""

    @property
    def needs_weights(self) -> bool:
        """Whether `output.pooled.weights` is needed, which costs a padded tensor."""

    def __call__(
        self, model: Classifier, output: Classified, losses: Tensor, targets: Tensor
    ) -> Sequence[LossTerm]:
        """Returns the terms; an empty sequence adds nothing.

        Args:
            model: the classifier in training.
            output: what it returned for the batch.
            losses: (examples,), the cross-entropy of each example.
            targets: (examples,), label ids; or (examples, labels), distributions.
        """


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

    Khosla et al. 2020, Eq. 2. For row i it is the mean over the other rows p of its label of
    -log(exp(z_i z_p / T) / sum_{a != i} exp(z_i z_a / T)), z being the vectors (rows, dim) at
    length 1, labels (rows,) their ids, and T the temperature: the lower, the more the nearest rows
    of other labels count. 0 if no row shares its label with another.
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


@dataclass(frozen=True)
class BatchShare:
    """The part of a batch that one of several processes computes at a time.

    It is never empty: all processes have to meet at the gradients, so a process without rows
    computes one and counts none.
    """

    rows: NDArray[np.int64]  # of the training set
    count: int  # of the rows that count, 0 or all
    batch_size: int  # of the whole batch
    processes: int  # that share it
    parts: int = 1  # that this process computes one after the other, whose gradients are added

    def factor(self, term: LossTerm) -> float:
        """The factor of a term, so that the sum over parts and the average over processes is the
        mean over the whole batch."""
        is_mean = term.per_example
        return self.processes * self.count / self.batch_size if is_mean else 1.0 / self.parts


def step_loss(
    model: Classifier,
    output: Classified,
    targets: Tensor,
    share: BatchShare,
    extra_losses: Sequence[ExtraLoss],
) -> tuple[Tensor, Tensor, list[LossTerm]]:
    """Returns the loss whose gradient, averaged over the processes, is that of the whole batch.

    With it come the cross-entropy, summed over the examples that count, and the unscaled terms.
    """
    logits = output.logits.float()  # (examples, labels)
    losses = functional.cross_entropy(logits, targets, reduction="none")  # (examples,)
    entropy = losses.sum() * min(share.count, 1)  # ()
    terms = [term for extra in extra_losses for term in extra(model, output, losses, targets)]
    added = sum((share.factor(term) * term.value for term in terms), entropy.new_zeros(()))
    return share.processes / share.batch_size * entropy + added, entropy, terms
