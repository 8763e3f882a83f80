"""How far a probe goes from its linear start towards its trained weights.

With few rows or noisy labels, training can lead away from what holds for new texts. So the weights
that are kept lie on the line between the start and the end of training, at the place where held-out
rows of the training texts have the smallest loss.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from math import ceil

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from genpool.probing.probe_model import ProbeModel

#: places on the line: 0 is the start, 1 the end of training
EXTENTS = (0.0, 0.25, 0.5, 0.75, 1.0)
FOLDS = 3
#: held-out rows that are enough to choose: of many rows not all folds are used
ENOUGH_ROWS = 500

Weights = dict[str, Tensor]
Positions = NDArray[np.int64]


def fold_count(texts: int) -> int:
    """Returns how many of the folds are used for a number of texts."""
    return min(FOLDS, ceil(FOLDS * ENOUGH_ROWS / max(texts, 1)))


def copy_weights(model: nn.Module) -> Weights:
    """Returns a copy of all parameters."""
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


@torch.no_grad()
def set_extent(model: nn.Module, start: Weights, end: Weights, extent: float) -> None:
    """Sets the parameters between those of the start (0) and the end (1) of training."""
    for name, weight in model.named_parameters():
        weight.copy_(torch.lerp(start[name], end[name], extent))


def choose_extent(
    model: ProbeModel,
    labels: Positions,
    seed: int,
    train: Callable[[ProbeModel, Positions], Weights],
    logits: Callable[[ProbeModel, Positions], Tensor],
) -> float:
    """Returns the extent of `EXTENTS` with the smallest loss on held-out rows.

    Args:
        model: the model with initial weights, which is copied.
        labels: (texts,), from 0. Labels with fewer rows than folds are never held out.
        seed: draws the folds.
        train: trains a model on some of the texts; returns the weights that it started from.
        logits: returns the logits (texts, classes) of some of the texts.

    Returns:
        1 if no row can be held out. Of equally good extents the smallest.
    """
    losses = torch.zeros(len(EXTENTS), dtype=torch.float64)
    for kept, held_out in folds(labels, seed):
        trained = copy.deepcopy(model)
        start = train(trained, kept)
        end, gold = copy_weights(trained), torch.from_numpy(labels[held_out])
        for place, extent in enumerate(EXTENTS):
            set_extent(trained, start, end, extent)
            scores = logits(trained, held_out).double()  # (held-out texts, classes)
            losses[place] += functional.cross_entropy(scores, gold, reduction="sum")
    return EXTENTS[int(losses.argmin())] if losses.any() else 1.0


def folds(labels: Positions, seed: int) -> Iterator[tuple[Positions, Positions]]:
    """Yields the rows to train on and the held-out rows of every fold that is used."""
    random = np.random.default_rng(seed)
    fold = np.full(len(labels), FOLDS)  # (texts,); FOLDS: in none
    for label in np.unique(labels):
        rows = random.permutation(np.flatnonzero(labels == label))
        if len(rows) >= FOLDS:
            fold[rows] = np.arange(len(rows)) % FOLDS
    for number in range(fold_count(len(labels))):
        if (fold == number).any():
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)
