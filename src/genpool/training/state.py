"""Where a run is: with the tensors, this is all that a checkpoint has to hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from genpool.training.penalty import PenaltyMonitor
from genpool.training.schedule import Schedule


@dataclass
class Sums:
    """What the steps since the last evaluation added up to."""

    loss: float = 0.0
    correct: float = 0.0
    examples: float = 0.0
    tokens: float = 0.0
    computed: float = 0.0
    seconds: float = 0.0


@dataclass
class RunState:
    """epoch and step_in_epoch: what comes next; step and seconds: done so far.

    data: a fingerprint of what is trained on, so that a run is not continued on something else.
    """

    schedule: Schedule
    data: int = 0
    epoch: int = 0
    step_in_epoch: int = 0
    step: int = 0
    seconds: float = 0.0
    stopped: bool = False
    metrics_length: int = 0
    sums: Sums = field(default_factory=Sums)
    watch: PenaltyMonitor = field(default_factory=PenaltyMonitor)

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> RunState:
        parts = {
            "schedule": Schedule(**saved["schedule"]),
            "sums": Sums(**saved["sums"]),
            "watch": PenaltyMonitor(**saved["watch"]),
        }
        return cls(**{**saved, **parts})


def trained_weights(model: nn.Module) -> dict[str, Tensor]:
    """A copy of the weights that training changes; frozen ones are the same all along."""
    return {
        name: each.detach().clone() for name, each in model.named_parameters() if each.requires_grad
    }


def restore_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    own = dict(model.named_parameters())
    with torch.no_grad():
        for name, each in weights.items():
            own[name].copy_(each)


def state_tensors(
    model: nn.Module, optimizer: torch.optim.Optimizer, best: dict[str, Tensor]
) -> dict[str, Tensor]:
    """Weights, Adam's moments and the best weights, by name."""
    tensors = {f"model.{name}": each for name, each in model.state_dict().items()}
    tensors |= {f"best.{name}": each for name, each in best.items()}
    for number, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"adam.{number}.{name}": each for name, each in moments.items()}
    return tensors


def load_tensors(
    tensors: dict[str, Tensor], model: nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, Tensor]:
    """Puts saved tensors back in their places; gives the best weights."""
    model.load_state_dict(_under("model.", tensors))
    moments: dict[int, dict[str, Tensor]] = {}
    for name, each in _under("adam.", tensors).items():
        number, _, key = name.partition(".")
        moments.setdefault(int(number), {})[key] = each
    optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
    return _under("best.", tensors)


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name[len(prefix) :]: each for name, each in tensors.items() if name.startswith(prefix)}
