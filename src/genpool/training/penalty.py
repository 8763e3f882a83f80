"""The penalty that a run asks for, and a watch over whether it does anything."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from genpool.model import Classifier
from genpool.pooling import Pooled
from genpool.pooling.penalties import (
    Penalty,
    attention_penalty,
    embedding_penalty,
    parameter_penalty,
    scalar_attention_penalty,
)
from genpool.training.settings import PenaltySettings


def needs_weights(settings: PenaltySettings) -> bool:
    return settings.name in ("attention", "scalar") and settings.weight > 0


def compute_penalties(
    settings: PenaltySettings, model: Classifier, pooled: Pooled
) -> list[Penalty]:
    """The terms to add to the loss: one for each side of a pair, as in the released program."""
    weight, threshold, average = settings.weight, settings.threshold, settings.average
    if settings.name == "none" or weight == 0:
        return []
    if settings.name == "parameter":
        w1 = model.encoder.pooling.w1
        return [parameter_penalty(w1, threshold, weight)] if isinstance(w1, Tensor) else []
    sides = model.sentences_per_example
    if settings.name == "embedding":
        heads = pooled.heads.chunk(sides)
        return [embedding_penalty(side, threshold, weight, average) for side in heads]
    if pooled.weights is None:
        return []
    weights = pooled.weights.chunk(sides)
    if settings.name == "scalar":
        return [scalar_attention_penalty(side, weight) for side in weights]
    return [attention_penalty(side, threshold, weight, average) for side in weights]


@dataclass
class PenaltyMonitor:
    """Sums over the steps since the last evaluation; part of a checkpoint.

    Each process adds its share of every step, so that the sums over all of them are those of one.
    """

    steps: int = 0
    term: float = 0.0
    active: float = 0.0
    distance: float = 0.0
    smallest: float = float("inf")

    def see(self, penalties: list[Penalty], share: float = 1.0) -> None:
        """Adds a step, of whose batch this process has computed a share."""
        if not penalties:
            return
        distances = torch.cat([each.distances.flatten() for each in penalties])
        self.steps += 1
        self.term += share * sum(float(each.term.detach()) for each in penalties)
        self.active += share * sum(float(each.active) for each in penalties) / len(penalties)
        if len(distances):
            self.distance += share * float(distances.mean())
            self.smallest = min(self.smallest, float(distances.min()))

    def report(self) -> dict[str, float]:
        """Means over the steps, for a line of metrics; empty where there is no penalty."""
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
