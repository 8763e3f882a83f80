"""The state of a run on disk: enough to go on as if it had never stopped.

A checkpoint is a folder with safetensors and JSON. It is written beside the others and renamed when
complete; the two newest are kept, so that a damaged one is never the only one.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from genpool.errors import TrainingError

TENSORS, STATE = "state.safetensors", "state.json"
KEPT = 2


class Checkpoint(NamedTuple):
    """What was saved, and a word about newer ones that could not be read."""

    state: dict[str, Any]
    tensors: dict[str, Tensor]
    warnings: list[str]


def save_checkpoint(
    folder: Path, step: int, state: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Writes the checkpoint of a step, then removes all but the newest ones."""
    unfinished = folder / ".unfinished"
    target = folder / f"step-{step:09d}"
    try:
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        whole = {name: each.detach().cpu().contiguous() for name, each in tensors.items()}
        save_file(whole, unfinished / TENSORS)
        sums = {"bytes": (unfinished / TENSORS).stat().st_size, "crc32": _crc(unfinished / TENSORS)}
        text = json.dumps({"file": sums, "state": dict(state)})
        (unfinished / STATE).write_text(text, encoding="utf-8")
        for name in (TENSORS, STATE):
            with (unfinished / name).open("rb+") as file:
                os.fsync(file.fileno())
        shutil.rmtree(target, ignore_errors=True)
        unfinished.rename(target)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise TrainingError(
            f"{folder}: the checkpoint of step {step} could not be written: {error}. The one "
            "before it and the models of this run are as they were; make room and use --resume."
        ) from error
    for old in _newest_first(folder)[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)


def load_checkpoint(folder: Path) -> Checkpoint | None:
    """The newest checkpoint that is whole; None where there is none at all."""
    warnings: list[str] = []
    for each in _newest_first(folder):
        try:
            read = json.loads((each / STATE).read_text(encoding="utf-8"))
            path = each / TENSORS
            if path.stat().st_size != read["file"]["bytes"] or _crc(path) != read["file"]["crc32"]:
                raise ValueError(f"{TENSORS} is truncated or damaged")
            return Checkpoint(read["state"], load_file(path), warnings)
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            warnings.append(f"{each.name} cannot be used ({error}); the one before it is")
    if warnings:
        raise TrainingError(
            f"{folder}: no checkpoint can be used: {'; '.join(warnings)}. Start the run anew in "
            "another folder."
        )
    return None


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*"), reverse=True)


def _crc(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            value = zlib.crc32(block, value)
    return value
