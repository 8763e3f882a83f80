"""Where the training of a probe starts: logistic regression on what the pooling returns untrained.

For a pooling that starts as the mean this is the classifier of the mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genpool.errors import require_extra
from genpool.evaluation.probes import GRID, choose_c, second_count
from genpool.evaluation.vectors import LabelledVectors
from genpool.probing.probe_model import ProbeModel
from genpool.probing.token_states import TokenStates

SCORING_BATCH = 256
MAX_ITERATIONS = 1000
#: C where there are too few rows to choose it
FEW_ROWS_C = 0.01


@dataclass(frozen=True)
class LinearStart:
    """How strongly the classifier is regularized.

    Attributes:
        c: the chosen C of the logistic regression.
        penalty: the factor of the squared weights in the mean loss of a row, for which the
            weights that the classifier starts with are the best ones.
    """

    c: float
    penalty: float


@torch.no_grad()
def start_classifier(
    model: ProbeModel,
    states: TokenStates,
    labels: NDArray[np.int64],
    seed: int,
    c: float | None = None,
) -> LinearStart:
    """Standardizes the states and vectors of a model and fits its classifier; nothing else changes.

    All heads get the same classifier, that of the mean of the heads, divided by their number.

    Args:
        model: the model, whose pooling is not trained yet.
        states: the training texts.
        labels: (texts,), from 0.
        seed: draws the folds on which C is chosen.
        c: the C. Default: None, chosen by cross-validation.
    """
    model.eval()
    model.set_scale("state", *_moments(model, states))
    vectors = head_means(model, states)  # (texts, dim)
    mean, std = vectors.mean(dim=0), vectors.std(dim=0, correction=0)
    heads = model.pooling.heads
    model.set_scale("vector", mean.repeat(heads), std.repeat(heads))
    scaled = (vectors - model.vector_mean[: len(mean)]) / model.vector_std[: len(mean)]
    data = LabelledVectors(scaled.double().numpy(), tuple(map(str, labels)))
    if c is None:
        enough = second_count(data.labels) >= 2  # for two folds with two labels each
        c = choose_c(data, None, sorted(GRID), seed) if enough else FEW_ROWS_C
    weight, bias = _logistic_regression(scaled.double().numpy(), labels, c)
    squared = float((weight**2).sum())
    if len(weight) == 1:  # of two labels: the logits of both differ by as much
        weight, bias = np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
    model.classifier.weight.copy_(torch.from_numpy(weight).repeat(1, heads) / heads)
    model.classifier.bias.copy_(torch.from_numpy(bias))
    spread = float((model.classifier.weight**2).sum())
    factor = squared / spread if spread > 0 else 1.0
    return LinearStart(c, factor / (2 * c * len(states)))


def _moments(model: ProbeModel, states: TokenStates) -> tuple[Tensor, Tensor]:
    """Mean and deviation (dim,) of all tokens of the texts."""
    dim = states.dim
    total, squares, count = torch.zeros(dim).double(), torch.zeros(dim).double(), 0
    for texts in states.batches(SCORING_BATCH):
        rows, _ = states.batch(texts)  # (rows, layers, dim)
        mixed = model.mixed(rows).double()
        total += mixed.sum(dim=0)
        squares += (mixed**2).sum(dim=0)
        count += len(mixed)
    mean = total / max(count, 1)
    return mean, (squares / max(count, 1) - mean**2).clamp(min=0).sqrt()


@torch.no_grad()
def head_means(model: ProbeModel, states: TokenStates) -> Tensor:
    """Returns the mean of the heads of every text: (texts, dim)."""
    means = torch.zeros(len(states), model.pooling.input_dim)
    for texts in states.batches(SCORING_BATCH):
        means[torch.from_numpy(texts)] = model.pool(*states.batch(texts)).heads.mean(dim=1)
    return means


def _logistic_regression(
    vectors: NDArray[np.float64], labels: NDArray[np.int64], c: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights (classes, dim) and biases (classes,); of two classes (1, dim) and (1,)."""
    with require_extra("A probe", "train"):
        from sklearn.linear_model import LogisticRegression
    model = LogisticRegression(C=c, max_iter=MAX_ITERATIONS).fit(vectors, labels)
    return model.coef_, model.intercept_
