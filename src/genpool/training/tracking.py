"""What is recorded about a run besides its settings: versions, memory, TensorBoard."""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from genpool.errors import require_extra

try:
    import resource
except ModuleNotFoundError:  # not on Windows
    resource = None  # type: ignore[assignment]

PACKAGES = ("genpool", "torch", "numpy", "tokenizers", "safetensors", "accelerate", "scipy")


def versions() -> dict[str, str]:
    """Returns the versions of Python and of the installed packages that decide a result."""
    installed = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return installed


def about_run(data: str | Path | None, processes: int, device: torch.device) -> dict[str, Any]:
    """Returns the content of run.json."""
    return {
        "data": None if data is None else str(data),
        "processes": processes,
        "device": str(device),
        "threads": torch.get_num_threads(),
        "machine": platform.machine(),
        "versions": versions(),
    }


def peak_memory_mb() -> float | None:
    """Returns the peak resident memory of this process in MB; None on Windows."""
    if resource is None:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


class Tracker:
    """Writes metrics for TensorBoard, if enabled."""

    def __init__(self, folder: Path, enabled: bool) -> None:
        self._writer: Any = None
        if enabled:
            with require_extra("TensorBoard", "tensorboard"):
                from torch.utils.tensorboard import SummaryWriter
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
