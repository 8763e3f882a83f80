"""The state of a run on disk: enough to continue as if the run had never stopped.

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
#: checkpoints that are kept
KEPT = 2


class Checkpoint(NamedTuple):
    """What was saved, and a warning for every newer checkpoint that could not be read."""

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
        plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        save_file(plain, unfinished / TENSORS)
        size, crc32 = (unfinished / TENSORS).stat().st_size, _file_crc(unfinished / TENSORS)
        content = {
            "file": {"bytes": size, "crc32": crc32},
            "state_crc32": _state_crc(state),
            "state": dict(state),
        }
        text = json.dumps(content)
        (unfinished / STATE).write_text(text, encoding="utf-8", newline="\n")
        for name in (TENSORS, STATE):
            with (unfinished / name).open("rb+") as file:
                os.fsync(file.fileno())
        shutil.rmtree(target, ignore_errors=True)
        unfinished.rename(target)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise TrainingError(
            f"{folder}: the checkpoint of step {step} could not be written: {error}. The previous "
            "one and the models of this run are intact; free some space and use --resume."
        ) from error
    for old in _newest_first(folder)[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)


def load_checkpoint(folder: Path) -> Checkpoint | None:
    """Returns the newest checkpoint that is intact; None where there is none at all.

    Raises:
        TrainingError: there are checkpoints, but all of them are damaged.
    """
    warnings: list[str] = []
    for path in _newest_first(folder):
        try:
            saved = json.loads((path / STATE).read_text(encoding="utf-8"))
            tensors, expected = path / TENSORS, saved["file"]
            size = tensors.stat().st_size
            if size != expected["bytes"] or _file_crc(tensors) != expected["crc32"]:
                raise ValueError(f"{TENSORS} is truncated or damaged")
            # Checkpoints of genpool 0.1 have no checksum of their state.
            if saved.get("state_crc32", crc := _state_crc(saved["state"])) != crc:
                raise ValueError(f"{STATE} is damaged")
            return Checkpoint(saved["state"], load_file(tensors), warnings)
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            warnings.append(f"{path.name} cannot be used ({error}); using the previous one")
    if warnings:
        raise TrainingError(
            f"{folder}: no checkpoint can be used: {'; '.join(warnings)}. Start the run again in "
            "another folder: --out"
        )
    return None


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*"), reverse=True)


def _state_crc(state: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(dict(state)).encode())


def _file_crc(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            value = zlib.crc32(block, value)
    return value
