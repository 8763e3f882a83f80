"""What training and distillation share: a state that is saved, and a run that continues from it."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any, Generic, NoReturn, TypeVar

import torch
from rich.console import Console
from torch import nn

from genpool.errors import Interrupted, TrainingError
from genpool.training.checkpoint import Checkpoint, load_checkpoint
from genpool.training.run_folder import RunFolder
from genpool.training.state import SavedState, load_tensors, state_tensors, trained_weights

State = TypeVar("State", bound=SavedState)
Model = TypeVar("Model", bound=nn.Module)


class ResumableRun(Generic[Model, State]):
    """A model, its optimizer, its state, and the folder that all of it is saved in.

    Attributes:
        best: the best weights so far, by name.
        main: whether this process writes files and messages; one of several does.
        shown: whether progress is shown.
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
        """Continues from the newest intact checkpoint; without one, from the beginning.

        Raises:
            TrainingError: no checkpoint can be read, or the run was trained on other data.
        """
        checkpoint = load_checkpoint(self.folder.checkpoints)
        if checkpoint is None:
            self.say(f"{self.folder.path}: no checkpoint yet, starting from the beginning")
        else:
            for warning in checkpoint.warnings:
                self.say(f"warning: {warning}")
            self.state = self._saved_state(checkpoint)
            self.best = load_tensors(checkpoint.tensors, self.model, self.optimizer)
            self.say(f"{self.folder.path}: continuing after step {self.state.step}")
        if self.main:
            self.folder.cut_metrics(self.state.metrics_length)

    def _saved_state(self, checkpoint: Checkpoint) -> State:
        try:
            saved = self.state.from_dict({"data": self.state.data, **checkpoint.state})
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

    def log(self, line: dict[str, Any]) -> None:
        """Appends a line to metrics.jsonl."""
        if self.main:
            self.state.metrics_length = self.folder.log(line)

    def save(self) -> None:
        """Writes a checkpoint."""
        if self.main:
            tensors = state_tensors(self.model, self.optimizer, self.best)
            self.folder.save_checkpoint(self.state.step, asdict(self.state), tensors)
        self.saved_at = time.monotonic()

    def save_if_due(self, minutes: float) -> None:
        """Writes a checkpoint if the last one is older than that."""
        if time.monotonic() - self.saved_at > 60 * minutes:
            self.save()

    def interrupt(self) -> NoReturn:
        """Saves, and ends the run with `Interrupted`."""
        self.save()
        raise Interrupted(self.folder.path, self.state.step)
