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

import json
import os
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from genpool.config import to_dict
from genpool.disk.atomic import atomic_file
from genpool.disk.lock import (
    HOLDER,
    LOCK,
    FolderInUse,
    held_folder,
    remove_lock,
    require_unheld,
)
from genpool.errors import TrainingError, require_extra

#: differing settings that an error names
MAX_DIFFERENCES = 5


def settings_toml(settings: Any) -> str:
    """Returns settings as TOML, without those that are None: TOML has no word for it."""
    with require_extra("training", "train"):
        import tomli_w
    return tomli_w.dumps(_without_none(to_dict(settings)))


def _without_none(table: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _without_none(value) if isinstance(value, dict) else value
        for key, value in table.items()
        if value is not None
    }


def _dotted(text: str) -> dict[str, Any]:
    """Returns the settings of a TOML text by "section.key"."""
    dotted: dict[str, Any] = {}
    for section, table in tomllib.loads(text).items():
        entries = table if isinstance(table, dict) else {"": table}
        dotted |= {f"{section}.{key}".rstrip("."): value for key, value in entries.items()}
    return dotted


@contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Holds the lock of an existing folder; raises TrainingError where another process does."""
    with ExitStack() as held:
        with _lock_errors(folder):
            held.enter_context(held_folder(folder))
        yield


@contextmanager
def _lock_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except FolderInUse as holder:
        raise TrainingError(
            f"{folder} is in use: {holder} is writing a run there. Wait until it has ended, or "
            "give another folder: --out"
        ) from None
    except OSError as error:
        raise TrainingError(
            f"{folder} cannot be locked: {error.strerror or error}. Give another folder: --out"
        ) from error


class RunFolder:
    """Paths and files of one run."""

    #: whether the run is written to disk
    is_saved = True

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
        self.learning_curve = self.path / "learning-curve.png"

    def check(self, settings: Any, resume: bool) -> None:
        """Raises TrainingError unless the folder is free or holds the same run; writes nothing."""
        try:
            if not self.results.is_file():  # a finished run is refused without touching it
                with _lock_errors(self.path):
                    require_unheld(self.path)
            self._check_contents(settings, resume)
        except OSError as error:  # a name that is too long, or a folder that may not be entered
            raise TrainingError(
                f"{self.path} cannot be used: {error.strerror or error}. Give another folder: --out"
            ) from error

    def _check_contents(self, settings: Any, resume: bool) -> None:
        if self.path.is_file():
            raise TrainingError(f"{self.path} is a file. Give a folder: --out")
        if not self.config.is_file():
            if self.path.is_dir() and not all(map(self._is_from_a_start, self.path.iterdir())):
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

    def _is_from_a_start(self, entry: Path) -> bool:
        """Whether this is of a run that was killed before it wrote config.toml."""
        if entry == self.predictions:
            return not any(entry.iterdir())
        return entry == self.about or entry.name in (LOCK, HOLDER) or entry.suffix == ".tmp"

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
        """Creates the folder if need be and holds its lock, so that no other run writes to it.

        Raises TrainingError where another process holds it, or `check` refuses it: the folder may
        have changed while the data was read.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TrainingError(
                f"{self.path} cannot be created: {error.strerror or error}. Give another folder: "
                "--out"
            ) from error
        with run_lock(self.path):
            self._check_contents(settings, resume)
            # What a killed run left of the files that are written whole or not at all.
            targets = (self.config, self.about, self.results, self.report, self.learning_curve)
            own = tuple(f".{target.name}" for target in targets)
            leftovers = [path for path in self.path.glob(".*.tmp") if path.name.startswith(own)]
            leftovers += [*self.predictions.glob(".*.tmp"), *self.checkpoints.glob(".*.tmp")]
            for path in leftovers:
                with suppress(OSError):
                    path.unlink()
            if not self.config.is_file():
                self.begin(settings, about)
            yield
        if self.results.is_file():
            remove_lock(self.path)

    def begin(self, settings: Any, about: dict[str, Any]) -> None:
        """Writes the first files; config.toml is written last: with it, there is a run."""
        self.predictions.mkdir(parents=True, exist_ok=True)
        self.write(self.about, json.dumps(about, indent=2) + "\n")
        self.write(self.config, settings_toml(settings))

    def write(self, path: Path, text: str) -> None:
        """Writes a text file of the run, whole or not at all."""
        with atomic_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="\n")

    def log(self, line: dict[str, Any]) -> int:
        """Appends a line of metrics; returns the size of the file, which a checkpoint remembers."""
        try:
            with self.metrics.open("a", encoding="utf-8", newline="\n") as file:
                file.write(json.dumps(line) + "\n")
                file.flush()
                os.fsync(file.fileno())
                return file.tell()
        except OSError as error:
            raise TrainingError(
                f"{self.metrics} cannot be written: {error.strerror or error}. The models of this "
                "run are intact; free some space and use --resume."
            ) from error

    def cut_metrics(self, length: int) -> None:
        """Drops the lines written after a checkpoint: they will be written again."""
        self.metrics.touch()
        os.truncate(self.metrics, length)

    def metric_lines(self) -> list[dict[str, Any]]:
        """Returns the lines of metrics.jsonl; an empty list where there is none."""
        if not self.metrics.is_file():
            return []
        return [json.loads(line) for line in self.metrics.read_text(encoding="utf-8").splitlines()]


class UnsavedRun(RunFolder):
    """Takes the place of the folder of a run that leaves no files: metrics are kept in memory."""

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

    def log(self, line: dict[str, Any]) -> int:
        """Keeps a line of metrics."""
        self.lines.append(line)
        return 0

    def metric_lines(self) -> list[dict[str, Any]]:
        """Returns the lines of metrics."""
        return self.lines
