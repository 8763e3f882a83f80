"""Records of cells made by hand, for tests that train nothing."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from genpool.reproduction.definitions import SCALES
from genpool.reproduction.ledger import DONE, FAILED, Cell, Ledger, Record, pack_rows
from genpool.reproduction.plan import Plan

ROWS = 200


def empty_plan(folder: Path, scale: str) -> Plan:
    return Plan(SCALES[scale], Ledger(folder / "cells.jsonl"))


def done(cell: Cell, dev: float = 0.5, correct: int = 100, **fields: Any) -> Record:
    """Returns the record of a cell whose first `correct` of 200 test rows are right."""
    rows = np.arange(ROWS) < correct
    splits = ("test", "in", "cross")
    return Record(
        key=cell.key,
        status=DONE,
        accuracy={"dev": dev, **dict.fromkeys(splits, correct / ROWS)},
        correct=dict.fromkeys(splits, pack_rows(rows)),
        counts={"dev": 1000, **dict.fromkeys(splits, ROWS)},
        dev_curve=[dev / 2, dev],
        dev_epochs=[1.0, 2.0],
        parameters=1234,
        seconds=60.0,
        cell=asdict(cell),
        **fields,
    )


def failed(cell: Cell, reason: str) -> Record:
    return Record(cell.key, FAILED, reason, cell=asdict(cell))
