"""The folder of a run: what was asked for, what happened, what came out.

config.toml        the complete settings
run.json           where the data is, the versions
metrics.jsonl      one line per evaluation
best/  last/       models
predictions/       dev.tsv and one file per test split
results.json       the scores at the end; the run is finished when it exists
report.md          all of it for people, with pictures (not of a distillation)
checkpoints/       for --resume; removed when the run is finished
.lock              held by the process that writes the run; removed when the run is finished
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from genpool.config import to_dict
from genpool.disk.atomic import atomic_file, write_text_file
from genpool.disk.lock import (
    HOLDER,
    LOCK,
    folder_errors,
    held_folder,
    remove_lock,
    require_unheld,
)
from genpool.errors import DataError, TrainingError, require_extra

#: differing settings that an error names
MAX_DIFFERENCES = 5
#: checkpoints that are kept, so that a damaged one is never the only one
KEPT = 2


def settings_toml(settings: Any) -> str:
    """Returns settings as TOML, without those that are None: TOML has no word for it."""
    with require_extra("training", "train"):
        import tomli_w

    def known(table: dict[str, Any]) -> dict[str, Any]:
        pairs = ((key, known(v) if isinstance(v, dict) else v) for key, v in table.items())
        return {key: value for key, value in pairs if value is not None}

    return tomli_w.dumps(known(to_dict(settings)))


def _dotted(text: str) -> dict[str, Any]:
    """Returns the settings of a TOML text by "section.key"."""
    dotted: dict[str, Any] = {}
    for section, table in tomllib.loads(text).items():
        entries = table if isinstance(table, dict) else {"": table}
        dotted |= {f"{section}.{key}".rstrip("."): value for key, value in entries.items()}
    return dotted


class RunFolder:
    """Paths and files of one run; without a path, of a run that leaves no files."""

    def __init__(self, path: str | Path | None) -> None:
        self.is_saved, self.path = path is not None, Path("unsaved" if path is None else path)
        self.config = self.path / "config.toml"
        self.about = self.path / "run.json"
        self.metrics = self.path / "metrics.jsonl"
        self.best = self.path / "best"
        self.last = self.path / "last"
        self.checkpoints = self.path / "checkpoints"
        self.predictions = self.path / "predictions"
        self.results = self.path / "results.json"
        self.report = self.path / "report.md"
        self.learning_curve = self.path / "learning-curve.png"

    def check(self, settings: Any, resume: bool) -> None:
        """Raises TrainingError unless the folder is free or holds the same run; writes nothing."""
        if self.is_saved:
            with folder_errors(self.path, TrainingError):
                if not self.results.is_file():  # a finished run is refused without touching it
                    require_unheld(self.path)
                self._check_contents(settings, resume)

    def _check_contents(self, settings: Any, resume: bool) -> None:
        if self.path.is_file():
            raise TrainingError(f"{self.path} is a file. Give a folder: --out")
        if not self.config.is_file():
            # What a run that was killed before it wrote config.toml leaves.
            names = [entry.name for entry in self.path.iterdir()] if self.path.is_dir() else []
            if not all(
                name in (LOCK, HOLDER, self.about.name) or name.endswith(".tmp") for name in names
            ):
                raise TrainingError(
                    f"{self.path} holds something that is not a run. Give another folder: --out"
                )
            return
        if self.results.is_file():
            raise TrainingError(
                f"{self.path} holds a run that is finished; its model is {self.best}. For another "
                "run give another folder: --out"
            )
        self.check_settings(settings)
        if not resume:
            raise TrainingError(
                f"{self.path} holds a run that is not finished. Continue it with --resume, or give "
                "another folder: --out"
            )

    def check_settings(self, settings: Any) -> None:
        """Raises TrainingError unless the run in this folder has these settings."""
        here = _dotted(settings_toml(settings))
        try:
            there = _dotted(self.config.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError:  # somebody has edited it
            named = ""
        else:
            changes = [
                f"{name} is {there.get(name)!r} there, {here.get(name)!r} here"
                for name in {**there, **here}
                if there.get(name) != here.get(name)
            ]
            if not changes:
                return
            rest = len(changes) - MAX_DIFFERENCES
            more = f"; and {rest} more" if rest > 0 else ""
            named = f" ({'; '.join(changes[:MAX_DIFFERENCES])}{more})"
        raise TrainingError(
            f"{self.path} holds another run: its settings in config.toml differ{named}. Give "
            "another folder (--out), or train with that config.toml to continue it."
        )

    @contextmanager
    def held(self, settings: Any, resume: bool, about: dict[str, Any]) -> Iterator[None]:
        """Creates the folder if need be and holds its lock; it may have changed since `check`."""
        if not self.is_saved:
            yield
            return
        with held_folder(self.path, TrainingError):
            self._check_contents(settings, resume)
            # What a killed run left of the files that are written whole or not at all.
            targets = (self.config, self.about, self.metrics, self.results, self.report)
            names = [target.name for target in (*targets, self.learning_curve)]
            leftovers = [path for name in names for path in self.path.glob(f".{name}.*.tmp")]
            leftovers += [*self.predictions.glob(".*.tmp"), *self.checkpoints.glob(".*.tmp")]
            for path in leftovers:
                with suppress(OSError):
                    path.unlink()
            self.begin(settings, about)
            yield
        if self.results.is_file():
            remove_lock(self.path)

    def begin(self, settings: Any, about: dict[str, Any]) -> None:
        """Writes the first files; with config.toml, there is a run."""
        if not self.config.is_file():
            write_text_file(self.config, settings_toml(settings))
        if not self.about.is_file():
            write_text_file(self.about, json.dumps(about, indent=2) + "\n")
        self.predictions.mkdir(exist_ok=True)

    def log(self, line: dict[str, Any]) -> None:
        """Appends a line of metrics."""
        try:
            with self.metrics.open("a", encoding="utf-8", newline="\n") as file:
                file.write(json.dumps(line) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise TrainingError(
                f"{self.metrics} cannot be written: {error.strerror or error}. The models of this "
                "run are intact; free some space and use --resume."
            ) from error

    def metric_lines(self) -> list[dict[str, Any]]:
        """Returns the lines of metrics.jsonl."""
        text = self.metrics.read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]


# --- Checkpoints ---------------------------------------------------------------------------------


def save_checkpoint(
    folder: Path, step: int, state: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Writes the checkpoint of a step, with the state as metadata, and removes old ones."""
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
    """Returns the state and tensors of the newest intact checkpoint, and warnings about others."""
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
