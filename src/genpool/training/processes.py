"""Several processes under torchrun, or one: the accelerator that knows which."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from genpool.errors import TrainingError, require_extra

#: our names of precisions, and accelerate's
PRECISIONS = {"float32": "no", "bfloat16": "bf16", "float16": "fp16"}


def make_accelerator(precision: str) -> Any:
    """Returns accelerate's `Accelerator` for this process.

    Raises:
        MissingExtraError: accelerate is not installed.
        TrainingError: this Python process has trained in another precision before.
    """
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
    """Turns the end of another process, without which this one cannot continue, into words.

    Raises:
        TrainingError: another process of the run ended.
    """
    try:
        yield
    except RuntimeError as error:
        if accelerator.num_processes == 1 or not _is_lost_connection(error):
            raise
        raise TrainingError(
            f"another of the {accelerator.num_processes} processes of this run ended (was it "
            "killed, or out of memory?), and this one cannot continue alone. The last checkpoint "
            "is intact: continue with the same command and --resume."
        ) from error


def _is_lost_connection(error: RuntimeError) -> bool:
    # gloo raises bare RuntimeError, whose text begins with its source file.
    return isinstance(error, torch.distributed.DistError) or "gloo" in str(error)


def sum_over_processes(accelerator: Any, value: float) -> float:
    """Returns the sum of a number over all processes."""
    local = torch.tensor(value, dtype=torch.float64, device=accelerator.device)
    total: Tensor = accelerator.reduce(local, reduction="sum")
    return float(total)


def min_over_processes(accelerator: Any, value: float) -> float:
    """Returns the smallest of a number over all processes."""
    local = torch.tensor([value], dtype=torch.float64, device=accelerator.device)
    return float(accelerator.gather(local).min())


def end_process_group() -> None:
    """Ends this process, if it is one of several under torchrun; called when all is done.

    The interpreter is not finalized. DistributedDataParallel keeps gloo's threads alive after the
    process group is destroyed; one that still holds a tensor then aborts the process, now and then,
    and torchrun reports a finished run as failed.
    """
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return
    torch.distributed.destroy_process_group()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
