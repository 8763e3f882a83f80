"""A run that leaves no files: `fit` keeps everything in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from genpool.saving.saved_model import SavedModel
from genpool.training.run_folder import RunFolder


class UnsavedRun(RunFolder):
    """Takes the place of the folder of a run; only the metrics are kept, in `lines`."""

    is_saved = False

    def __init__(self) -> None:
        super().__init__(Path("unsaved"))
        self.lines: list[dict[str, Any]] = []

    def check(self, settings: Any, resume: bool) -> None:
        """Does nothing: there is no folder that could hold another run."""

    @contextmanager
    def held(self, settings: Any, resume: bool, about: dict[str, Any]) -> Iterator[None]:
        """Does nothing: no other process can write this run."""
        yield

    def save_model(self, path: Path, make_model: Callable[[], SavedModel]) -> None:
        """Does nothing: the best weights are in memory."""

    def save_checkpoint(
        self, step: int, state: Mapping[str, Any], tensors: Mapping[str, Tensor]
    ) -> None:
        """Does nothing: the run cannot be resumed."""

    def log(self, line: dict[str, Any]) -> int:
        """Keeps a line of metrics."""
        self.lines.append(line)
        return 0

    def metric_lines(self) -> list[dict[str, Any]]:
        """Returns the lines of metrics."""
        return self.lines
