"""Where a run is: together with the tensors, this is all that a checkpoint holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import torch
from torch import Tensor, nn

from genpool.model import Classifier
from genpool.training.penalty import PenaltyMonitor
from genpool.training.schedule import Schedule
from genpool.training.settings import TrainingSettings


@dataclass(kw_only=True)
class SavedState:
    """What every resumable run remembers.

    Attributes:
        data: a fingerprint of the training data, so that a run is not continued on other data.
        epoch: the epoch that comes next, or is under way.
        step: the steps done so far.
        metrics_length: the size of metrics.jsonl in bytes; later lines are dropped on resuming.
    """

    data: int = 0
    epoch: int = 0
    step: int = 0
    metrics_length: int = 0

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Self:
        """Returns the state that `dataclasses.asdict` turned into `saved`."""
        return cls(**saved)


@dataclass
class Sums:
    """Totals over the steps since the last evaluation.

    `computed` counts the token positions that the layers computed, padding included.
    """

    loss: float = 0.0
    correct: float = 0.0
    examples: float = 0.0
    tokens: float = 0.0
    computed: float = 0.0
    seconds: float = 0.0


@dataclass
class RunState(SavedState):
    """The state of a training run.

    Attributes:
        schedule: learning rate, best dev accuracy and halvings.
        step_in_epoch: the step of the epoch that comes next.
        seconds: the time that steps and evaluations have taken so far.
        stopped: whether the schedule has ended the run.
        sums: totals since the last evaluation.
        watch: the penalty since the last evaluation.
    """

    schedule: Schedule
    step_in_epoch: int = 0
    seconds: float = 0.0
    stopped: bool = False
    sums: Sums = field(default_factory=Sums)
    watch: PenaltyMonitor = field(default_factory=PenaltyMonitor)

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Self:
        parts = {
            "schedule": Schedule(**saved["schedule"]),
            "sums": Sums(**saved["sums"]),
            "watch": PenaltyMonitor(**saved["watch"]),
        }
        return cls(**{**saved, **parts})


def trainable_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Returns the parameters that training changes."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def parameter_groups(model: Classifier, settings: TrainingSettings) -> list[dict[str, Any]]:
    """Returns the trained parameters with a factor of the learning rate, for the optimizer.

    The word table has no weight decay: a word that does not occur in a batch would shrink.
    """
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    words = model.encoder.embedding.words
    encoder = {id(parameter) for parameter in model.encoder.parameters()}
    for parameter in trainable_parameters(model):
        rate = settings.encoder_rate if id(parameter) in encoder else 1.0
        decay = 0.0 if parameter is words else settings.weight_decay
        groups.setdefault((rate, decay), []).append(parameter)
    return [
        {"params": parameters, "rate": rate, "weight_decay": decay}
        for (rate, decay), parameters in groups.items()
    ]


def trained_weights(model: nn.Module) -> dict[str, Tensor]:
    """Returns a copy of the weights that training changes; frozen ones never differ."""
    return {
        name: parameter.detach().clone()
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }


def restore_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Copies weights of `trained_weights` back into the model."""
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, weight in weights.items():
            parameters[name].copy_(weight)


def state_tensors(
    model: nn.Module, optimizer: torch.optim.Optimizer, best: dict[str, Tensor]
) -> dict[str, Tensor]:
    """Returns the weights, Adam's moments and the best weights, by name."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {f"best.{name}": tensor for name, tensor in best.items()}
    for number, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"adam.{number}.{name}": tensor for name, tensor in moments.items()}
    return tensors


def load_tensors(
    tensors: dict[str, Tensor], model: nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, Tensor]:
    """Loads tensors of `state_tensors` into model and optimizer; returns the best weights."""
    model.load_state_dict(_with_prefix("model.", tensors))
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _with_prefix("adam.", tensors).items():
        number, _, key = name.partition(".")
        moments.setdefault(int(number), {})[key] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
    devices = {name: parameter.device for name, parameter in model.named_parameters()}
    return {
        name: tensor.to(devices[name]) for name, tensor in _with_prefix("best.", tensors).items()
    }


def _with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Returns the tensors whose names begin with the prefix, named without it."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
