"""What is known about a run besides its settings: versions, memory, TensorBoard."""

from __future__ import annotations

import platform
import resource
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from genpool.errors import MissingExtraError

PACKAGES = ("genpool", "torch", "numpy", "tokenizers", "safetensors", "accelerate", "scipy")


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def about_run(data: str | Path | None, processes: int, device: torch.device) -> dict[str, Any]:
    """What `run.json` says."""
    return {
        "data": None if data is None else str(data),
        "processes": processes,
        "device": str(device),
        "threads": torch.get_num_threads(),
        "machine": platform.machine(),
        "versions": versions(),
    }


def peak_memory_mb() -> float:
    """The most memory that this process has had so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


class Tracker:
    """Writes metrics for TensorBoard, if asked to."""

    def __init__(self, folder: Path, wanted: bool) -> None:
        self._writer: Any = None
        if wanted:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise MissingExtraError("TensorBoard", "tensorboard") from error
            self._writer = SummaryWriter(str(folder / "tensorboard"))

    def log(self, line: dict[str, Any]) -> None:
        if self._writer is None:
            return
        for name, value in line.items():
            if isinstance(value, int | float):
                self._writer.add_scalar(name, value, line["step"])

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
