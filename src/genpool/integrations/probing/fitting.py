"""The part of a probe that is trained: a mix of layers, a pooling and a linear classifier.

The weights that are kept lie on the line between the start, which is logistic regression on the
untrained pooling, and the end of training, where held-out rows have the smallest loss.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from genpool.errors import InputError, require_extra, unknown_name
from genpool.evaluation.probes import GRID, MAX_ITERATIONS, choose_c, second_count
from genpool.evaluation.vectors import LabelledVectors
from genpool.integrations.probing.token_states import TokenStates
from genpool.pooling import POOLINGS, Pooled, Pooling
from genpool.progress import Done, progress
from genpool.tensors.packing import Packing
from genpool.training.state import trained_weights

if TYPE_CHECKING:
    from genpool.integrations.probing.estimator import AttentiveProbe

#: a dimension that never changes is not divided by its deviation of zero
SMALLEST_DEVIATION = 1e-6
SCORING_BATCH = 256
#: C where there are too few rows to choose it
FEW_ROWS_C = 0.01
#: how long a probe is trained: in epochs, within limits of steps
EPOCHS, MIN_STEPS, MAX_STEPS = 10, 300, 1000
#: of the classifier, which starts trained
CLASSIFIER_RATE = 1e-3
#: the share of the steps in which the learning rate rises
WARM_UP = 0.1
#: places on the line: 0 is the start, 1 the end of training
EXTENTS = (0.0, 0.25, 0.5, 0.75, 1.0)
FOLDS = 3
#: held-out rows that are enough to choose: of many rows not all folds are used
ENOUGH_ROWS = 500

Weights = dict[str, Tensor]
Positions = NDArray[np.int64]


class ProbeModel(nn.Module):
    """Token states (rows, layers, dim) in, logits (batch, classes) out. Layers are mixed with
    learned weights, equal at first (as in ELMo); states and vectors are standardized with mean and
    deviation of the training rows, so that one learning rate suits every encoder."""

    state_mean: Tensor
    state_std: Tensor
    vector_mean: Tensor
    vector_std: Tensor

    def __init__(self, pooling: Pooling, layers: int, classes: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.layer_scores = nn.Parameter(torch.zeros(layers)) if layers > 1 else None
        self.pooling = pooling
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(pooling.output_dim, classes)
        for name, size in (("state", pooling.input_dim), ("vector", pooling.output_dim)):
            self.register_buffer(f"{name}_mean", torch.zeros(size))
            self.register_buffer(f"{name}_std", torch.ones(size))

    @property
    def is_trained(self) -> bool:
        """Whether anything below the classifier has parameters."""
        return self.layer_scores is not None or any(True for _ in self.pooling.parameters())

    def mixed(self, rows: Tensor) -> Tensor:
        """Mixes the layers: (rows, layers, dim) -> (rows, dim)."""
        if self.layer_scores is None:
            return rows.squeeze(1)
        return torch.einsum("l,rld->rd", self.layer_scores.softmax(dim=0), rows)

    def standardized(self, rows: Tensor) -> Tensor:
        """Returns what is pooled: (rows, layers, dim) -> (rows, dim)."""
        return (self.mixed(rows) - self.state_mean) / self.state_std

    def pool(self, rows: Tensor, packing: Packing) -> Pooled:
        """Pools packed states (rows, layers, dim)."""
        return self.pooling.pool_rows(self.standardized(rows), packing)

    def forward(self, rows: Tensor, packing: Packing) -> Tensor:
        """(rows, layers, dim) -> logits (batch, classes)"""
        vectors = (self.pool(rows, packing).vector - self.vector_mean) / self.vector_std
        logits: Tensor = self.classifier(self.dropout(vectors))
        return logits

    def set_scale(self, name: str, mean: Tensor, std: Tensor) -> None:
        """Sets mean and deviation of the "state" or the "vector"."""
        getattr(self, f"{name}_mean").copy_(mean)
        getattr(self, f"{name}_std").copy_(std.clamp(min=SMALLEST_DEVIATION))


def probe_pooling(name: str, dim: int, bidirectional: bool, **options: Any) -> Pooling:
    """Returns a pooling by name, which returns the mean until it is trained, if it can; options
    that it does not know are left out."""
    usable = [key for key, cls in POOLINGS.items() if not cls.needs_gates]
    if name not in usable:
        raise InputError(unknown_name("pooling of a probe", name, usable))
    cls = POOLINGS[name]
    options |= {"start": "mean", "initial_std": 0.01}
    if cls.needs_direction:
        options["bidirectional"] = bidirectional
    known = cls.__init__.__annotations__
    return cls(dim, **{key: value for key, value in options.items() if key in known})


@torch.no_grad()
def start_classifier(
    model: ProbeModel, states: TokenStates, labels: Positions, seed: int, c: float | None = None
) -> tuple[float, float]:
    """Standardizes the states and vectors of a model and fits its classifier; returns its C, chosen
    if it is None, and the factor of the squared weights for which it minimizes the mean loss."""
    model.eval()
    model.set_scale("state", *_moments(model, states))
    vectors = map_texts(states, lambda *batch: model.pool(*batch).heads.mean(dim=1))  # (texts, dim)
    mean, std = vectors.mean(dim=0), vectors.std(dim=0, correction=0)
    heads = model.pooling.heads  # each gets the classifier of their mean, divided by their number
    model.set_scale("vector", mean.repeat(heads), std.repeat(heads))
    scaled = (vectors - model.vector_mean[: len(mean)]) / model.vector_std[: len(mean)]
    data = LabelledVectors(scaled.double().numpy(), tuple(map(str, labels)))
    if c is None:
        enough = second_count(data.labels) >= 2  # for two folds with two labels each
        c = choose_c(data, None, sorted(GRID), seed) if enough else FEW_ROWS_C
    with require_extra("A probe", "train"):
        from sklearn.linear_model import LogisticRegression
    regression = LogisticRegression(C=c, max_iter=MAX_ITERATIONS).fit(data.vectors, labels)
    # (classes, dim) and (classes,); of two classes (1, dim) and (1,)
    weight, bias = regression.coef_, regression.intercept_
    squared = float((weight**2).sum())
    if len(weight) == 1:  # of two labels: the logits of both differ by as much
        weight, bias = np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
    model.classifier.weight.copy_(torch.from_numpy(weight).repeat(1, heads) / heads)
    model.classifier.bias.copy_(torch.from_numpy(bias))
    spread = float((model.classifier.weight**2).sum())
    factor = squared / spread if spread > 0 else 1.0
    return c, factor / (2 * c * len(states))


def _moments(model: ProbeModel, states: TokenStates) -> tuple[Tensor, Tensor]:
    """Returns mean and deviation (dim,) of all tokens of the texts."""
    sums, count = torch.zeros(2, states.rows.shape[2], dtype=torch.float64), 0
    for texts in states.batches(SCORING_BATCH):
        mixed = model.mixed(states.batch(texts)[0]).double()  # (rows, dim)
        sums += torch.stack([mixed.sum(dim=0), (mixed**2).sum(dim=0)])
        count += len(mixed)
    mean, square = sums / max(count, 1)  # (dim,) each
    return mean, (square - mean**2).clamp(min=0).sqrt()


@torch.no_grad()
def map_texts(states: TokenStates, run: Callable[[Tensor, Packing], Tensor]) -> Tensor:
    """Returns what `run` makes of packed states, (texts, dim), in the order of the texts."""
    order = list(states.batches(SCORING_BATCH))
    rows = torch.cat([run(*states.batch(texts)) for texts in order])
    return rows[torch.from_numpy(np.argsort(np.concatenate(order)))]


def probe_logits(model: ProbeModel, states: TokenStates) -> Tensor:
    """Returns the logits (texts, classes) of all texts."""
    return map_texts(states, model.eval())


def steps_for(probe: AttentiveProbe, texts: int) -> int:
    """Returns the steps of one training on so many texts: EPOCHS of them, within limits."""
    epochs = EPOCHS * ceil(texts / probe.batch_size)
    return probe.steps or min(max(epochs, MIN_STEPS), MAX_STEPS)


def fit_probe(
    model: ProbeModel, states: TokenStates, labels: Positions, probe: AttentiveProbe
) -> tuple[float, float]:
    """Trains a model with initial weights on texts and their labels (texts,), from 0; returns the C
    of its linear start, and the extent: 0 for a model that its linear start trains completely."""
    extent, seed, initial = probe.extent, probe.seed, copy.deepcopy(model)
    c, penalty = start_classifier(model, states, labels, seed)
    if not model.is_trained:
        return c, 0.0
    steps = steps_for(probe, len(states))
    total = steps * (1 if extent is not None else 1 + fold_count(len(states)))
    with progress(f"training {probe.pooling}", total, probe.show_progress_bar) as done:
        if extent is None:
            losses = torch.zeros(len(EXTENTS), dtype=torch.float64)  # of the held-out rows
            for kept, held_out in folds(labels, seed):
                fold, data = copy.deepcopy(initial), (states[kept], labels[kept])
                _, fold_penalty = start_classifier(fold, *data, seed, c)
                start, end = train_probe(fold, *data, fold_penalty, probe, steps, done)
                gold = torch.from_numpy(labels[held_out])
                for place, candidate in enumerate(EXTENTS):
                    set_extent(fold, start, end, candidate)
                    logits = probe_logits(fold, states[held_out]).double()
                    losses[place] += functional.cross_entropy(logits, gold, reduction="sum")
            # The smallest of equally good ones; the end of training if no row can be held out.
            extent = EXTENTS[int(losses.argmin())] if losses.any() else 1.0
        start, end = train_probe(model, states, labels, penalty, probe, steps, done)
    set_extent(model, start, end, extent)
    return c, extent


def train_probe(
    model: ProbeModel,
    states: TokenStates,
    labels: Positions,
    penalty: float,
    probe: AttentiveProbe,
    steps: int,
    done: Done,
) -> tuple[Weights, Weights]:
    """Trains a model from its linear start on; returns the weights of the start and of the end."""
    start = trained_weights(model)
    random = torch.Generator().manual_seed(probe.seed)
    torch.manual_seed(probe.seed)  # for dropout
    classifier = model.classifier.parameters()
    below = [part for name, part in model.named_parameters() if not name.startswith("classifier.")]
    groups = [{"params": below, "lr": probe.learning_rate, "weight_decay": probe.weight_decay}]
    # It has the penalty of its logistic regression instead of weight decay.
    groups += [{"params": list(classifier), "lr": CLASSIFIER_RATE, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups)
    rising = max(1, round(WARM_UP * steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(  # it rises, then falls to 0
        optimizer, lambda step: min((step + 1) / rising, (steps - step) / (steps - rising + 1))
    )
    gold, size = torch.from_numpy(labels), probe.batch_size
    order = np.array([], dtype=np.int64)  # the texts that are left of an epoch
    model.train()
    for _ in range(steps):
        if not len(order):
            order = torch.randperm(len(states), generator=random).numpy()
        texts, order = order[:size], order[size:]
        rows, packing = states.batch(texts, probe.token_dropout, random)
        loss = functional.cross_entropy(model(rows, packing), gold[torch.from_numpy(texts)])
        loss = loss + penalty * (model.classifier.weight**2).sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        done(1)
    model.eval()
    return start, trained_weights(model)


@torch.no_grad()
def set_extent(model: nn.Module, start: Weights, end: Weights, extent: float) -> None:
    """Sets the parameters between those of the start (0) and the end (1) of training."""
    for name, weight in model.named_parameters():
        weight.copy_(torch.lerp(start[name], end[name], extent))


def fold_count(texts: int) -> int:
    """Returns how many of the folds are used for a number of texts."""
    return min(FOLDS, ceil(FOLDS * ENOUGH_ROWS / max(texts, 1)))


def folds(labels: Positions, seed: int) -> Iterator[tuple[Positions, Positions]]:
    """Yields the rows to train on and the held-out rows of every fold that is used; labels with
    fewer rows than folds are never held out."""
    random = np.random.default_rng(seed)
    fold = np.full(len(labels), FOLDS)  # (texts,); FOLDS: in none
    for label in np.unique(labels):
        rows = random.permutation(np.flatnonzero(labels == label))
        if len(rows) >= FOLDS:
            fold[rows] = np.arange(len(rows)) % FOLDS
    for number in range(fold_count(len(labels))):
        if (fold == number).any():
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)
