"""The ledger of a reproduction: one JSON line for every cell that was finished or has failed.

Lines are only ever appended, by one process, and flushed to disk; a line that a kill cut short is
ignored and removed before the next one is written. Everything that the report needs is in it.
"""

from __future__ import annotations

import base64
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

DONE, FAILED = "done", "failed"


@dataclass(frozen=True)
class Record:
    """What is known of a cell.

    Attributes:
        key: the cell's key.
        status: "done" or "failed".
        reason: why it failed; empty where it did not.
        accuracy: accuracy of the dev set and of every test split, by name.
        correct: which rows of every test split were right, packed as base64 (see `pack_rows`).
        counts: number of rows of every split.
        dev_curve: dev accuracy after every evaluation.
        dev_epochs: how many epochs were trained at every evaluation.
        heads: distances between the heads and how many hinges are active, as the run measured them.
        asleep: whether the run has a penalty that was never active.
        parameters: number of trained parameters.
        seconds: time spent in training.
        settings: all settings of the run.
        versions: versions of Python and the packages.
        predictions: path of the folder of predictions, relative to the reproduction.
        trees: where the syntax trees came from; empty where the encoder reads none.
        cell: the cell itself, for people.
    """

    key: str
    status: str
    reason: str = ""
    accuracy: Mapping[str, float] = field(default_factory=dict)
    correct: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    dev_curve: Sequence[float] = ()
    dev_epochs: Sequence[float] = ()
    heads: Mapping[str, float] = field(default_factory=dict)
    asleep: bool = False
    parameters: int = 0
    seconds: float = 0.0
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    predictions: str = ""
    trees: str = ""
    cell: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dev(self) -> float:
        return self.accuracy["dev"]

    def correct_rows(self, split: str) -> NDArray[np.bool_]:
        """Returns which rows of a test split were right, (rows,)."""
        return unpack_rows(self.correct[split], self.counts[split])


def pack_rows(correct: NDArray[np.bool_]) -> str:
    """Returns a text that holds one bit a row."""
    return base64.b64encode(np.packbits(correct).tobytes()).decode("ascii")


def unpack_rows(text: str, count: int) -> NDArray[np.bool_]:
    """Returns the rows that `pack_rows` was given."""
    packed = np.frombuffer(base64.b64decode(text), dtype=np.uint8)
    return np.unpackbits(packed, count=count).astype(bool)


class Ledger:
    """The records of a reproduction by the keys of their cells."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._records: dict[str, Record] = {}
        self._length = 0  # bytes of whole lines
        self._read()

    def _read(self) -> None:
        if not is_file(self.path):
            return
        for number, line in enumerate(self.path.read_bytes().splitlines(keepends=True), start=1):
            if not line.endswith(b"\n"):
                return  # cut short by a kill: the cell is run again
            try:
                record = Record(**json.loads(line))
            except (ValueError, TypeError) as error:
                raise FolderError(
                    f"{self.path}, line {number}, is not a record of a cell: {error}. Remove the "
                    "line to run its cell again."
                ) from None
            self._records[record.key] = record
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
        self._records[record.key] = record

    def assume(self, record: Record) -> None:
        """Takes a record as given for as long as this ledger is open; nothing is written."""
        self._records[record.key] = record

    def done(self, key: str) -> Record | None:
        """Returns the record of a finished cell, or None."""
        record = self._records.get(key)
        return record if record is not None and record.status == DONE else None

    def failed(self, key: str) -> Record | None:
        """Returns the record of a cell that failed, or None."""
        record = self._records.get(key)
        return record if record is not None and record.status == FAILED else None

    def retry(self, key: str) -> None:
        """Forgets that a cell failed, for as long as this ledger is open."""
        if self.failed(key) is not None:
            del self._records[key]

    def records(self) -> list[Record]:
        """Returns all records, in the order in which their cells were first entered."""
        return list(self._records.values())
