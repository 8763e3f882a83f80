"""Training a probe on the states of frozen tokens."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from genpool.probing.extent import Weights, choose_extent, copy_weights, fold_count, set_extent
from genpool.probing.linear_start import SCORING_BATCH, LinearStart, start_classifier
from genpool.probing.probe_model import ProbeModel
from genpool.probing.token_states import TokenStates

#: how long a probe is trained: in epochs, within limits of steps
EPOCHS, MIN_STEPS, MAX_STEPS = 10, 300, 1000
#: of the classifier, which starts trained
CLASSIFIER_RATE = 1e-3
#: the share of the steps in which the learning rate rises
WARM_UP = 0.1


@dataclass(frozen=True)
class ProbeTraining:
    """How a probe is trained.

    Attributes:
        steps: how often the parameters are updated.
        batch_size: texts per step.
        learning_rate: of the pooling and the mix of layers; it rises for a tenth of the steps and
            then falls to 0.
        weight_decay: of the pooling.
        token_dropout: the share of tokens that are left out of a text in training.
        extent: how much of the way from the linear start to the end of training is gone, from 0
            to 1; None chooses it on held-out rows.
        seed: draws the batches and what is dropped.
    """

    steps: int = 300
    batch_size: int = 32
    learning_rate: float = 1e-3
    weight_decay: float = 0.1
    token_dropout: float = 0.2
    extent: float | None = None
    seed: int = 0

    def total_steps(self, texts: int) -> int:
        """Returns the steps for a number of texts, those on held-out folds included."""
        return self.steps * (1 if self.extent is not None else 1 + fold_count(texts))


def training_steps(texts: int, batch_size: int) -> int:
    """Returns the number of steps for a number of texts: EPOCHS of them, within limits."""
    return min(max(EPOCHS * ceil(texts / batch_size), MIN_STEPS), MAX_STEPS)


@dataclass(frozen=True)
class FittedProbe:
    """What was chosen for a probe.

    Attributes:
        c: the C of its linear start.
        extent: how much of the way to the end of training is gone; 0 where nothing is trained.
    """

    c: float
    extent: float


def fit_probe(
    model: ProbeModel,
    states: TokenStates,
    labels: NDArray[np.int64],
    training: ProbeTraining,
    done: Callable[[int], object] = lambda count: None,
) -> FittedProbe:
    """Trains a probe: its classifier alone, then classifier, pooling and mix of layers together.

    A model without parameters below the classifier is trained by the first part.

    Args:
        model: the model, with initial weights.
        states: the training texts.
        labels: (texts,), from 0.
        training: how it is trained.
        done: called with 1 after every step.
    """
    extent = training.extent
    initial = copy.deepcopy(model)
    start = start_classifier(model, states, labels, training.seed)
    if not model.is_trained:
        return FittedProbe(start.c, 0.0)

    def train_fold(fold_model: ProbeModel, texts: NDArray[np.int64]) -> Weights:
        part, gold = states.select(texts), labels[texts]
        fold_start = start_classifier(fold_model, part, gold, training.seed, start.c)
        return _train(fold_model, part, gold, training, fold_start, done)

    def fold_logits(fold_model: ProbeModel, texts: NDArray[np.int64]) -> Tensor:
        return probe_logits(fold_model, states.select(texts))

    if extent is None:
        extent = choose_extent(initial, labels, training.seed, train_fold, fold_logits)
    first = _train(model, states, labels, training, start, done)
    set_extent(model, first, copy_weights(model), extent)
    return FittedProbe(start.c, extent)


def _train(
    model: ProbeModel,
    states: TokenStates,
    labels: NDArray[np.int64],
    training: ProbeTraining,
    start: LinearStart,
    done: Callable[[int], object],
) -> Weights:
    """Trains a model from its linear start on; returns the weights of that start."""
    first = copy_weights(model)
    random = torch.Generator().manual_seed(training.seed)
    torch.manual_seed(training.seed)  # for dropout
    optimizer = _optimizer(model, training)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, _rate_shape(training.steps))
    gold = torch.from_numpy(labels)
    model.train()
    for texts in _batches(len(states), training, random):
        rows, packing = states.batch(texts, training.token_dropout, random)
        loss = functional.cross_entropy(model(rows, packing), gold[torch.from_numpy(texts)])
        loss = loss + start.penalty * (model.classifier.weight**2).sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        done(1)
    model.eval()
    return first


def _optimizer(model: ProbeModel, training: ProbeTraining) -> torch.optim.AdamW:
    classifier = list(model.classifier.parameters())
    known = {id(parameter) for parameter in classifier}
    below = [parameter for parameter in model.parameters() if id(parameter) not in known]
    rate, decay = training.learning_rate, training.weight_decay
    # The classifier has the penalty of its logistic regression instead of weight decay.
    return torch.optim.AdamW(
        [
            {"params": below, "lr": rate, "weight_decay": decay},
            {"params": classifier, "lr": CLASSIFIER_RATE, "weight_decay": 0.0},
        ]
    )


def _rate_shape(steps: int) -> Callable[[int], float]:
    """The factor of the learning rate at each step: it rises, then falls to 0."""
    rising = max(1, round(WARM_UP * steps))
    return lambda step: min((step + 1) / rising, (steps - step) / (steps - rising + 1))


def _batches(
    count: int, training: ProbeTraining, random: torch.Generator
) -> Iterator[NDArray[np.int64]]:
    """Yields the positions of the texts of every step; all texts once in an epoch."""
    made = 0
    while True:
        order = torch.randperm(count, generator=random).numpy()
        for at in range(0, count, training.batch_size):
            if made == training.steps:
                return
            yield order[at : at + training.batch_size]
            made += 1


@torch.no_grad()
def probe_logits(model: ProbeModel, states: TokenStates) -> Tensor:
    """Returns the logits (texts, classes) of all texts."""
    model.eval()
    logits = torch.zeros(len(states), model.classifier.out_features)
    for texts in states.batches(SCORING_BATCH):
        logits[torch.from_numpy(texts)] = model(*states.batch(texts))
    return logits
