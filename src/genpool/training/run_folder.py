"""The folder of a run: what was asked for, what happened, what came out.

config.toml        the settings, complete
run.json           where the data is, the versions
metrics.jsonl      a line an evaluation
best/  last/       models
predictions/       dev.tsv and one file for every test split
results.json       the scores at the end; the run is finished when it is there
report.md          all of it for people, with pictures (not of a distillation)
checkpoints/       for --resume; removed when the run is finished
"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

from genpool.config import to_dict
from genpool.disk.files import atomic_file
from genpool.errors import MissingExtraError, TrainingError

#: settings that an error names
SHOWN = 5


def settings_toml(settings: Any) -> str:
    """Settings as TOML. What is None is left out: TOML has no word for it."""
    try:
        import tomli_w
    except ModuleNotFoundError as error:
        raise MissingExtraError("training", "train") from error
    sections = {
        section: {key: value for key, value in values.items() if value is not None}
        for section, values in to_dict(settings).items()
    }
    return tomli_w.dumps(sections)


def _differences(there: str, here: str) -> str:
    """The settings in which two TOML texts differ, the first few of them by name."""
    try:
        texts = [tomllib.loads(text) for text in (there, here)]
    except tomllib.TOMLDecodeError:  # somebody has edited it
        return ""
    sides = [
        {
            f"{section}.{key}": value
            for section, values in text.items()
            for key, value in values.items()
        }
        for text in texts
    ]
    names = [name for name in {**sides[0], **sides[1]} if sides[0].get(name) != sides[1].get(name)]
    told = [
        f"{name} is {sides[0].get(name)!r} there, {sides[1].get(name)!r} here" for name in names
    ]
    more = f"; and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
    return f" ({'; '.join(told[:SHOWN])}{more})" if told else ""


class RunFolder:
    """Paths and files of one run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.toml"
        self.about = self.path / "run.json"
        self.metrics = self.path / "metrics.jsonl"
        self.best = self.path / "best"
        self.last = self.path / "last"
        self.checkpoints = self.path / "checkpoints"
        self.predictions = self.path / "predictions"
        self.results = self.path / "results.json"
        self.report = self.path / "report.md"

    def check(self, settings: Any, resume: bool) -> None:
        """Sees that the folder is free, or that of the same run; nothing is written."""
        if self.path.is_file():
            raise TrainingError(f"{self.path} is a file. Give a folder: --out")
        if not self.config.is_file():
            if self.path.is_dir() and not all(map(self._from_a_start, self.path.iterdir())):
                raise TrainingError(
                    f"{self.path} holds something that is not a run. Give another folder: --out"
                )
            return
        if self.results.is_file():
            raise TrainingError(
                f"{self.path} holds a run that is finished; its model is {self.best}. For another "
                "give another folder: --out"
            )
        self.check_settings(settings)
        if not resume:
            raise TrainingError(
                f"{self.path} holds a run that is not finished. Continue it with --resume, or give "
                "another folder: --out"
            )

    def check_settings(self, settings: Any) -> None:
        """Sees that the run in this folder has these settings."""
        there, here = self.config.read_text(encoding="utf-8"), settings_toml(settings)
        if there != here:
            raise TrainingError(
                f"{self.path} holds another run, whose settings in config.toml are others"
                f"{_differences(there, here)}. Give another folder (--out), or train with that "
                "config.toml to continue it."
            )

    def begin(self, settings: Any, about: dict[str, Any]) -> None:
        """Makes the folder. config.toml comes last: with it, there is a run."""
        if self.config.is_file():
            return
        try:
            self.predictions.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TrainingError(
                f"{self.path} cannot be made: {error.strerror or error}. Give another folder: --out"
            ) from error
        self.write(self.about, json.dumps(about, indent=2) + "\n")
        self.write(self.config, settings_toml(settings))

    def _from_a_start(self, entry: Path) -> bool:
        """Whether `begin` wrote this, and was killed before it came to config.toml."""
        if entry == self.predictions:
            return not any(entry.iterdir())
        return entry == self.about or entry.suffix == ".tmp"

    def write(self, path: Path, text: str) -> None:
        with atomic_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def log(self, line: dict[str, Any]) -> int:
        """Adds a line of metrics; gives the length of the file, which a checkpoint remembers."""
        try:
            with self.metrics.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
                file.flush()
                os.fsync(file.fileno())
                return file.tell()
        except OSError as error:
            raise TrainingError(
                f"{self.metrics} cannot be written: {error.strerror or error}. The models of this "
                "run are whole; make room and use --resume."
            ) from error

    def cut_metrics(self, length: int) -> None:
        """Forgets the lines written after a checkpoint: they will be written again."""
        self.metrics.touch()
        os.truncate(self.metrics, length)

    def metric_lines(self) -> list[dict[str, Any]]:
        if not self.metrics.is_file():
            return []
        return [json.loads(line) for line in self.metrics.read_text(encoding="utf-8").splitlines()]
