"""Where a run is: its schedule, what it continues from, signals and several processes."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import Any, Generic, NoReturn, TypeVar

import torch
from rich.console import Console
from torch import Tensor, nn

from genpool.disk.atomic import write_text_file
from genpool.errors import Interrupted, TrainingError, require_extra
from genpool.model import Classifier
from genpool.training.run_folder import RunFolder, load_checkpoint, save_checkpoint
from genpool.training.settings import TrainingSettings

#: our names of precisions, and accelerate's
PRECISIONS = {"float32": "no", "bfloat16": "bf16", "float16": "fp16"}
#: what ends a run that can be continued
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: totals over the steps since the last evaluation: of the cross-entropy, the rows that were right,
#: all rows, tokens, computed positions (padding included), seconds, and of a penalty
SUMS = (
    *("loss", "correct", "examples", "tokens", "computed", "seconds"),
    *("penalty_steps", "penalty", "penalty_active", "penalty_distance"),
)


@dataclass(kw_only=True)
class SavedState:
    """What every resumable run remembers; with the tensors, all that a checkpoint holds."""

    data: int = 0  # a fingerprint, so that a run is not continued on other data
    epoch: int = 0  # that comes next, or is under way
    step: int = 0  # done so far
    lines: list[dict[str, Any]] = field(default_factory=list)  # of metrics.jsonl so far


@dataclass
class RunState(SavedState):
    """The state of a training run, and when to lower the learning rate and to stop.

    "restore-halve" is the rule of the released program: Adam's moments are kept, and a tie counts
    as an improvement. "linear" takes scores within a standard error of the best for a tie: on a
    small dev set the highest of many is a lucky one; later weights, at a lower rate, are better.
    """

    learning_rate: float
    best: float = -1.0
    halvings: int = 0
    worse_in_a_row: int = 0
    stopped: bool = False  # by the schedule
    step_in_epoch: int = 0  # that comes next
    seconds: float = 0.0  # that steps and evaluations have taken so far
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(SUMS, 0.0))
    closest: float = float("inf")  # the smallest distance of heads since an evaluation

    def after(self, score: float, settings: TrainingSettings, standard_error: float = 0.0) -> str:
        """Returns what follows from a dev score, of which more is better, and updates the schedule.

        The model is the "best" so far, "worse", or the best weights and half the rate "restore" it.
        """
        tolerance = standard_error if settings.schedule == "linear" else 0.0
        if score >= self.best - tolerance:
            self.best, self.worse_in_a_row = max(self.best, score), 0
            return "best"
        self.worse_in_a_row += 1
        if settings.schedule != "restore-halve":
            self.stopped = self.worse_in_a_row == settings.patience
            return "worse"
        self.halvings += 1
        self.learning_rate /= 2
        self.stopped = self.halvings >= settings.halvings
        return "restore"


def rate_factors(steps: int, settings: TrainingSettings) -> list[float]:
    """Returns the factor of the learning rate at each step: it rises and falls, or is 1."""
    if settings.schedule != "linear":
        return [1.0] * steps
    rising = max(1, round(settings.warmup * steps))
    falling = max(steps - rising, 1)
    return [min((step + 1) / rising, max(steps - step, 1) / falling, 1.0) for step in range(steps)]


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
    model.load_state_dict(weights, strict=False)


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


# --- A run that continues ------------------------------------------------------------------------

State = TypeVar("State", bound=SavedState)
Model = TypeVar("Model", bound=nn.Module)


class ResumableRun(Generic[Model, State]):
    """What training and distillation share: a model, its optimizer, its state, and their folder.

    One of several processes is `main` and writes files and messages.
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
            self._load(state, tensors)
            self.say(f"{self.folder.path}: continuing after step {self.state.step}")
        if self.main:  # without the lines after the checkpoint, which will be written again
            lines = "".join(json.dumps(line) + "\n" for line in self.state.lines)
            write_text_file(self.folder.metrics, lines)

    def _load(self, saved: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Loads what `save` wrote: the state, the weights, Adam's moments and the best weights."""
        try:
            state = type(self.state)(**saved)
        except TypeError as error:
            raise TrainingError(
                f"{self.folder.checkpoints}: the checkpoint is of another version of genpool "
                f"({error}). Continue with that version, or give another folder: --out"
            ) from error
        if state.data != self.state.data:
            raise TrainingError(
                f"{self.folder.path}: this is not the data that the run was trained on so far "
                f"({self.folder.about} says where that was). Give the same --data, or another "
                "folder: --out"
            )
        self.state = state
        groups: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}}
        moments: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            group, rest = name.split(".", 1)
            if group == "adam":
                number, key = rest.split(".", 1)
                moments.setdefault(int(number), {})[key] = tensor
            else:
                groups[group][rest] = tensor
        self.model.load_state_dict(groups["model"])
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        device = {name: parameter.device for name, parameter in self.model.named_parameters()}
        self.best = {name: tensor.to(device[name]) for name, tensor in groups["best"].items()}

    def log(self, line: dict[str, Any]) -> None:
        """Appends a line to metrics.jsonl."""
        self.state.lines.append(line)
        if self.main and self.folder.is_saved:
            self.folder.log(line)

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

    def interrupt(self) -> NoReturn:
        """Saves, and ends the run with `Interrupted`."""
        self.save()
        raise Interrupted(self.folder.path, self.state.step)


# --- Signals -------------------------------------------------------------------------------------


@contextmanager
def catch_interrupts(signals: Sequence[signal.Signals] = STOP_SIGNALS) -> Iterator[list[int]]:
    """Yields the signals that have arrived, a list that is empty until then.

    The second signal is handled as before, so that a second Ctrl-C ends the program at once.
    """
    arrived: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield arrived  # only the main thread may set handlers
        return
    previous = {number: signal.getsignal(number) for number in signals}

    def notice(number: int, frame: FrameType | None) -> None:
        arrived.append(number)
        signal.signal(number, previous[signal.Signals(number)] or signal.SIG_DFL)

    for number in previous:
        signal.signal(number, notice)
    try:
        yield arrived
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler or signal.SIG_DFL)


# --- Several processes under torchrun, or one ----------------------------------------------------


def make_accelerator(precision: str) -> Any:
    """Returns accelerate's `Accelerator` of this process, which torchrun may have started."""
    with require_extra("training", "train"):
        from accelerate import Accelerator
    # accelerate joins several processes on the CPU only if it is asked for the CPU.
    kind = torch.accelerator.current_accelerator(check_available=True)
    shared = int(os.environ.get("WORLD_SIZE", "1")) > 1
    cpu = kind is None or (shared and kind.type == "mps")
    try:
        return Accelerator(mixed_precision=PRECISIONS[precision], cpu=cpu)
    except ValueError as error:  # its state is shared by all accelerators of a Python process
        raise TrainingError(
            f"training.precision is {precision!r}, but this Python process has trained in another "
            "precision before; start a new one."
        ) from error


@contextmanager
def report_lost_process(accelerator: Any) -> Iterator[None]:
    """Raises TrainingError if another process ended, without which this one cannot continue."""
    try:
        yield
    except RuntimeError as error:
        # gloo raises bare RuntimeError, whose text begins with its source file.
        is_lost = isinstance(error, torch.distributed.DistError) or "gloo" in str(error)
        if accelerator.num_processes == 1 or not is_lost:
            raise
        raise TrainingError(
            f"another of the {accelerator.num_processes} processes of this run ended (was it "
            "killed, or out of memory?), and this one cannot continue alone. The last checkpoint "
            "is intact: continue with the same command and --resume."
        ) from error


def end_process_group() -> None:
    """Ends this process, if it is one of several under torchrun, without finalizing Python.

    DistributedDataParallel keeps gloo's threads alive; one that holds a tensor aborts the process.
    """
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return
    torch.distributed.destroy_process_group()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
