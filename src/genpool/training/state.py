"""Where a run is: its schedule and sums, their checkpoints on disk, and a run that continues.

A checkpoint is a safetensors file with the state as metadata, written whole or not at all. The two
newest are kept, so that a damaged one is never the only one.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, NamedTuple, NoReturn, Self, TypeVar

import torch
from rich.console import Console
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from genpool.disk.atomic import atomic_file
from genpool.errors import DataError, Interrupted, TrainingError
from genpool.training.heads import PenaltyMonitor
from genpool.training.run_folder import RunFolder
from genpool.training.settings import TrainingSettings

#: checkpoints that are kept
KEPT = 2


class Decision(NamedTuple):
    """What follows from an evaluation."""

    is_best: bool  # the model is at least as good as the best so far
    restore: bool = False  # go back to the best weights
    stop: bool = False  # end the training


@dataclass
class Schedule:
    """When to lower the learning rate and when to stop.

    "restore-halve" is the rule of the released program: when dev accuracy is below the best so far,
    restore the best weights and halve the learning rate (Adam's moments are kept); stop at the last
    halving. A tie counts as an improvement. "constant" keeps the rate and may stop by patience.
    "linear" does the same with a rate that depends on the step (`rate_at`), and takes scores within
    a standard error of the best for a tie: on a small dev set the highest of many is a lucky one,
    and later weights, at a lower rate, are better.
    """

    learning_rate: float
    best: float = -1.0
    halvings: int = 0
    worse_in_a_row: int = 0

    def rate_at(self, step: int, steps: int, settings: TrainingSettings) -> float:
        """Returns the learning rate of a step, from 0, of a run of so many steps."""
        if settings.schedule != "linear":
            return self.learning_rate
        rising = max(1, round(settings.warmup * steps))
        falling = max(steps - rising, 1)
        return self.learning_rate * min((step + 1) / rising, max(steps - step, 1) / falling, 1.0)

    def after(
        self, score: float, settings: TrainingSettings, standard_error: float = 0.0
    ) -> Decision:
        """Returns the decision after an evaluation, and updates the schedule; more is better."""
        tolerance = standard_error if settings.schedule == "linear" else 0.0
        if score >= self.best - tolerance:
            self.best, self.worse_in_a_row = max(self.best, score), 0
            return Decision(is_best=True)
        self.worse_in_a_row += 1
        if settings.schedule != "restore-halve":
            patience = settings.patience
            return Decision(False, stop=patience is not None and self.worse_in_a_row >= patience)
        self.halvings += 1
        self.learning_rate /= 2
        return Decision(False, restore=True, stop=self.halvings >= settings.halvings)


@dataclass(kw_only=True)
class SavedState:
    """What every resumable run remembers; with the tensors, all that a checkpoint holds."""

    data: int = 0  # a fingerprint, so that a run is not continued on other data
    epoch: int = 0  # that comes next, or is under way
    step: int = 0  # done so far
    metrics_length: int = 0  # of metrics.jsonl in bytes; later lines are dropped on resuming

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Self:
        """Returns the state that `dataclasses.asdict` turned into `saved`."""
        return cls(**saved)


@dataclass
class Sums:
    """Totals over the steps since the last evaluation."""

    loss: float = 0.0
    correct: float = 0.0
    examples: float = 0.0
    tokens: float = 0.0
    computed: float = 0.0  # token positions that the layers computed, padding included
    seconds: float = 0.0


@dataclass
class RunState(SavedState):
    """The state of a training run; `sums` and `monitor` are of the steps since an evaluation."""

    schedule: Schedule
    step_in_epoch: int = 0  # that comes next
    seconds: float = 0.0  # that steps and evaluations have taken so far
    stopped: bool = False  # by the schedule
    sums: Sums = field(default_factory=Sums)
    monitor: PenaltyMonitor = field(default_factory=PenaltyMonitor)

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Self:
        parts = {"schedule": Schedule, "sums": Sums, "monitor": PenaltyMonitor}
        return cls(**{**saved, **{name: part(**saved[name]) for name, part in parts.items()}})


# --- Weights -------------------------------------------------------------------------------------


def trainable_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Returns the parameters that training changes."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


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


# --- Checkpoints ---------------------------------------------------------------------------------


def save_checkpoint(
    folder: Path, step: int, state: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Writes the checkpoint of a step, then removes all but the newest ones."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(dict(state))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_file(folder / f"step-{step:09d}.safetensors") as temporary:
            save_file(plain, temporary, {"state": text, "checksum": _checksum(text, plain)})
    except (DataError, OSError, SafetensorError) as error:
        raise TrainingError(
            f"{folder}: the checkpoint of step {step} could not be written: {error}. The previous "
            "one and the models of this run are intact; free some space and use --resume."
        ) from error
    for old in _newest_first(folder)[KEPT:]:
        old.unlink(missing_ok=True)


def load_checkpoint(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor], list[str]] | None:
    """Returns the state and the tensors of the newest intact checkpoint; None if there is none.

    There is a warning for every newer one that could not be read.
    """
    warnings: list[str] = []
    for path in _newest_first(folder):
        try:
            with safe_open(path, framework="pt") as file:
                saved = file.metadata()
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if _checksum(saved["state"], tensors) != saved["checksum"]:
                raise ValueError("its checksum differs")
            return json.loads(saved["state"]), tensors, warnings
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            warnings.append(f"{path.stem} cannot be used ({error}); using the previous one")
    if warnings:
        raise TrainingError(
            f"{folder}: no checkpoint can be used: {'; '.join(warnings)}. Start the run again in "
            "another folder: --out"
        )
    return None


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*"), reverse=True)


def _checksum(state: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(state.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tensor.shape}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


# --- A run that continues ------------------------------------------------------------------------

State = TypeVar("State", bound=SavedState)
Model = TypeVar("Model", bound=nn.Module)


class ResumableRun(Generic[Model, State]):
    """What training and distillation share: a model, its optimizer, its state, and their folder.

    `best` are the best weights so far, by name. One of several processes is `main` and writes
    files and messages; `shown` says whether it shows progress.
    """

    def __init__(
        self,
        model: Model,
        optimizer: torch.optim.Optimizer,
        state: State,
        folder: RunFolder,
        main: bool = True,
        show_progress: bool = True,
    ) -> None:
        self.model, self.optimizer, self.state, self.folder = model, optimizer, state, folder
        self.main, self.shown = main, show_progress and main
        self.best = trained_weights(model)
        self.saved_at = time.monotonic()

    def say(self, text: str) -> None:
        """Prints a message on standard error, once for all processes."""
        if self.main:
            Console(stderr=True).print(text, highlight=False, markup=False, soft_wrap=True)

    def resume(self) -> None:
        """Continues from the newest intact checkpoint; without one, from the beginning."""
        checkpoint = load_checkpoint(self.folder.checkpoints)
        if checkpoint is None:
            self.say(f"{self.folder.path}: no checkpoint yet, starting from the beginning")
        else:
            state, tensors, warnings = checkpoint
            for warning in warnings:
                self.say(f"warning: {warning}")
            self.state = self._checked(state)
            self._load_tensors(tensors)
            self.say(f"{self.folder.path}: continuing after step {self.state.step}")
        if self.main:
            self.folder.cut_metrics(self.state.metrics_length)

    def _checked(self, state: dict[str, Any]) -> State:
        try:
            saved = self.state.from_dict(state)
        except (KeyError, TypeError) as error:
            raise TrainingError(
                f"{self.folder.checkpoints}: the checkpoint is of another version of genpool "
                f"({error}). Continue with that version, or give another folder: --out"
            ) from error
        if saved.data != self.state.data:
            raise TrainingError(
                f"{self.folder.path}: this is not the data that the run was trained on so far "
                f"({self.folder.about} says where that was). Give the same --data, or another "
                "folder: --out"
            )
        return saved

    def _load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Loads what `save` wrote: the weights, Adam's moments and the best weights."""
        groups: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}}
        moments: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            group, _, rest = name.partition(".")
            if group == "adam":
                number, _, key = rest.partition(".")
                moments.setdefault(int(number), {})[key] = tensor
            else:
                groups[group][rest] = tensor
        self.model.load_state_dict(groups["model"])
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        devices = {name: parameter.device for name, parameter in self.model.named_parameters()}
        self.best = {name: tensor.to(devices[name]) for name, tensor in groups["best"].items()}

    def log(self, line: dict[str, Any]) -> None:
        """Appends a line to metrics.jsonl."""
        if self.main:
            self.state.metrics_length = self.folder.log(line)

    def save(self) -> None:
        """Writes a checkpoint."""
        if self.main and self.folder.is_saved:
            tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
            tensors |= {f"best.{name}": value for name, value in self.best.items()}
            for number, moments in self.optimizer.state_dict()["state"].items():
                tensors |= {f"adam.{number}.{name}": value for name, value in moments.items()}
            state = asdict(self.state)
            save_checkpoint(self.folder.checkpoints, self.state.step, state, tensors)
        self.saved_at = time.monotonic()

    def save_if_due(self, minutes: float) -> None:
        """Writes a checkpoint if the last one is older than that."""
        if time.monotonic() - self.saved_at > 60 * minutes:
            self.save()

    def interrupt(self) -> NoReturn:
        """Saves, and ends the run with `Interrupted`."""
        self.save()
        raise Interrupted(self.folder.path, self.state.step)
