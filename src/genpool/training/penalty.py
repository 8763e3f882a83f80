"""The penalty that a run adds to its loss, and a monitor of whether it has any effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from genpool.model import Classified, Classifier
from genpool.pooling import Pooled
from genpool.pooling.penalties import (
    Penalty,
    attention_penalty,
    embedding_penalty,
    parameter_penalty,
    scalar_attention_penalty,
)
from genpool.training.losses import LossTerm
from genpool.training.settings import PenaltySettings


class HeadPenalty:
    """The penalty of the settings as an extra loss of the training loop."""

    def __init__(self, settings: PenaltySettings) -> None:
        self.settings = settings

    @property
    def needs_weights(self) -> bool:
        return needs_weights(self.settings)

    def __call__(self, model: Classifier, output: Classified, losses: Tensor) -> list[LossTerm]:
        per_example = self.settings.name != "parameter"
        return [
            LossTerm(penalty.term, per_example, penalty)
            for penalty in compute_penalties(self.settings, model, output.pooled)
        ]


def is_penalized(settings: PenaltySettings) -> bool:
    """Whether the settings add a penalty to the loss."""
    return settings.name != "none" and settings.weight > 0


def needs_weights(settings: PenaltySettings) -> bool:
    """Whether the penalty is computed from attention weights."""
    return settings.name in ("attention", "scalar") and is_penalized(settings)


def compute_penalties(
    settings: PenaltySettings, model: Classifier, pooled: Pooled
) -> list[Penalty]:
    """Returns the penalties of a batch: one per side of a pair, as in the released program.

    The parameter penalty does not depend on sentences, so there is one of it. The list is empty
    where the settings have no penalty.
    """
    if not is_penalized(settings):
        return []
    return _PENALTIES[settings.name](settings, model, pooled)


def _parameter(settings: PenaltySettings, model: Classifier, pooled: Pooled) -> list[Penalty]:
    parameters = model.encoder.pooling.head_parameters()
    if parameters is None:
        return []
    return [parameter_penalty(parameters, settings.threshold, settings.weight)]


def _attention(settings: PenaltySettings, model: Classifier, pooled: Pooled) -> list[Penalty]:
    if pooled.weights is None:
        return []
    return [
        attention_penalty(side, settings.threshold, settings.weight, settings.average)
        for side in pooled.weights.chunk(model.sentences_per_example)
    ]


def _embedding(settings: PenaltySettings, model: Classifier, pooled: Pooled) -> list[Penalty]:
    return [
        embedding_penalty(side, settings.threshold, settings.weight, settings.average)
        for side in pooled.heads.chunk(model.sentences_per_example)
    ]


def _scalar(settings: PenaltySettings, model: Classifier, pooled: Pooled) -> list[Penalty]:
    if pooled.weights is None:
        return []
    sides = pooled.weights.chunk(model.sentences_per_example)
    return [scalar_attention_penalty(side, settings.weight) for side in sides]


_PENALTIES: dict[str, Callable[[PenaltySettings, Classifier, Pooled], list[Penalty]]] = {
    "parameter": _parameter,
    "attention": _attention,
    "embedding": _embedding,
    "scalar": _scalar,
}


@dataclass
class PenaltyMonitor:
    """Sums over the steps since the last evaluation; part of a checkpoint.

    Each process adds its share of every step, so the sums over all processes equal those of a run
    in one process.
    """

    steps: int = 0
    term: float = 0.0
    active: float = 0.0
    distance: float = 0.0
    smallest: float = float("inf")

    def update(
        self, penalties: Sequence[Penalty], share: float = 1.0, is_new_step: bool = True
    ) -> None:
        """Adds the penalties of a step, or of a part of it.

        Args:
            penalties: of the step.
            share: the part of the batch that they are from. Default: 1, all of it.
            is_new_step: False for a further part of the same step. Default: True.
        """
        if not penalties:
            return
        distances = torch.cat([penalty.distances.flatten() for penalty in penalties])
        self.steps += is_new_step
        self.term += share * sum(float(penalty.term.detach()) for penalty in penalties)
        active = sum(float(penalty.active) for penalty in penalties) / len(penalties)
        self.active += share * active
        if len(distances):
            self.distance += share * float(distances.mean())
            self.smallest = min(self.smallest, float(distances.min()))

    def report(self) -> dict[str, float]:
        """Returns the means over the steps as metrics; empty where there is no penalty."""
        if not self.steps:
            return {}
        report = {
            "penalty": self.term / self.steps,
            "penalty_active": self.active / self.steps,
            "penalty_distance_mean": self.distance / self.steps,
        }
        if self.smallest != float("inf"):  # one head has no pairs
            report["penalty_distance_min"] = self.smallest
        return report

    @property
    def asleep(self) -> bool:
        """Whether not a single hinge was active."""
        return self.steps > 0 and self.active == 0


def sleep_warning(settings: PenaltySettings, mean_distance: float) -> str:
    """Returns the warning for a penalty that had no active hinge since the last evaluation."""
    return (
        f"the {settings.name} penalty was asleep: no pair of heads was closer than its threshold "
        f"{settings.threshold:g} in any step (mean distance {mean_distance:.3g}). It has no effect."
    )
