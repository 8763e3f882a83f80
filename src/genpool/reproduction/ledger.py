"""Cells, each one training run of a reproduction, and the ledger of their results."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genpool.disk.files import is_file
from genpool.errors import FolderError
from genpool.reproduction.definitions import NONE

DONE, FAILED = "done", "failed"
#: settings that were renamed, and their names in keys: a model is not trained again for a name
KEY_NAMES = {"encoder.parser": "text.parser"}


def parse_overrides(overrides: Sequence[str]) -> dict[str, str]:
    """Returns the values of `section.key=value` by setting; of equals, the last holds."""
    return dict(override.split("=", 1) for override in overrides)


@dataclass(frozen=True)
class Cell:
    """One training run."""

    scale: str  # "paper", "small" or "tiny"
    task: str  # such as "snli"
    system: str  # such as "max"
    recipe: str
    overrides: tuple[str, ...]  # settings put over the recipe, as `section.key=value`
    seed: int  # of weights, order and dropout
    penalty: str = NONE  # what keeps the heads apart, such as "attention 0.01"

    @property
    def key(self) -> str:
        """Identifies the run: two cells of equal settings are one, whatever table asks for them."""
        settings = sorted(
            (KEY_NAMES.get(name, name), value)
            for name, value in parse_overrides(self.overrides).items()
        )
        content = [self.scale, self.task, self.recipe, settings, self.seed]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]

    @property
    def folder(self) -> str:
        """Name of the run's folder: readable, and unique by the key."""
        penalty = "" if self.penalty == NONE else "-" + self.penalty.replace(" ", "-")
        return f"{self.task}-{self.system}{penalty}-seed{self.seed}-{self.key}"

    def __str__(self) -> str:
        penalty = "" if self.penalty == NONE else f", penalty {self.penalty}"
        return f"{self.task}: {self.system}{penalty}, seed {self.seed}"


@dataclass(frozen=True)
class Record:
    """What is known of a cell: a line of the ledger."""

    key: str  # of the cell
    status: str  # "done" or "failed"
    reason: str = ""  # why it failed
    accuracy: Mapping[str, float] = field(default_factory=dict)  # of dev and every test split
    correct: Mapping[str, str] = field(default_factory=dict)  # test splits, a bit a row, as base64
    counts: Mapping[str, int] = field(default_factory=dict)  # rows of every split
    dev_curve: Sequence[float] = ()  # dev accuracy after every evaluation
    dev_epochs: Sequence[float] = ()  # how many epochs were trained at every evaluation
    heads: Mapping[str, float] = field(default_factory=dict)  # distances, active hinges
    inactive: bool = False  # whether the run has a penalty that was never active
    parameters: int = 0  # that are trained
    seconds: float = 0.0  # spent in training
    settings: Mapping[str, Any] = field(default_factory=dict)  # all settings of the run
    versions: Mapping[str, str] = field(default_factory=dict)  # of Python and the packages
    predictions: str = ""  # their folder, relative to the reproduction
    trees: str = ""  # where the syntax trees came from, if the encoder reads any
    cell: Mapping[str, Any] = field(default_factory=dict)  # the cell itself, for people

    @property
    def dev(self) -> float:
        return self.accuracy["dev"]

    def correct_rows(self, split: str) -> NDArray[np.bool_]:
        """Returns which rows of a test split were right, (rows,)."""
        packed = np.frombuffer(base64.b64decode(self.correct[split]), dtype=np.uint8)
        return np.unpackbits(packed, count=self.counts[split]).astype(bool)


def pack_rows(correct: NDArray[np.bool_]) -> str:
    """Returns the text that `Record.correct` has for the rows of a split, (rows,)."""
    return base64.b64encode(np.packbits(correct).tobytes()).decode("ascii")


class Ledger:
    """The records of a reproduction by the keys of their cells: one JSON line for each.

    Lines are only ever appended, by one process, and flushed to disk; a line that a kill cut short
    is ignored and removed before the next one is written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: dict[str, Record] = {}
        self._length = 0  # bytes of whole lines
        lines = path.read_bytes().splitlines(keepends=True) if is_file(path) else []
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                return  # cut short by a kill: the cell is run again
            try:
                record = Record(**json.loads(line))
            except (ValueError, TypeError) as error:
                raise FolderError(
                    f"{path}, line {number}, is not a record of a cell: {error}. Remove the "
                    "line to run its cell again."
                ) from None
            self.records[record.key] = record
            self._length += len(line)

    def add(self, record: Record) -> None:
        """Appends a record; a later one of the same cell takes the place of an earlier one."""
        line = json.dumps(asdict(record)).encode() + b"\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.truncate(self._length)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._length += len(line)
        self.records[record.key] = record

    def done(self, cell: Cell) -> Record | None:
        """Returns the record of a cell that is finished, or None."""
        record = self.records.get(cell.key)
        return record if record is not None and record.status == DONE else None

    def with_status(self, status: str) -> list[Record]:
        return [record for record in self.records.values() if record.status == status]
