"""The ledger keeps whole lines, whatever happened to the last one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from genpool.errors import FolderError
from genpool.reproduction.ledger import Cell, Ledger, Record, pack_rows

from .records import done, empty_ledger, failed

ONE = Cell("tiny", "snli", "max", "rules", ("training.epochs=1",), 0)
OTHER = Cell("tiny", "snli", "mean", "rules", ("training.epochs=2",), 0)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 1000])
def test_rows_come_back_as_they_were(count: int) -> None:
    rows = np.random.default_rng(count).random(count) < 0.3
    record = Record("", "done", correct={"test": pack_rows(rows)}, counts={"test": count})
    assert record.correct_rows("test").tolist() == rows.tolist()


def test_records_are_read_back(tmp_path: Path) -> None:
    ledger = empty_ledger(tmp_path)
    ledger.add(done(ONE, dev=0.25))
    ledger.add(failed(OTHER, "out of memory"))
    again = Ledger(ledger.path)
    record = again.done(ONE)
    assert record is not None and record.dev == 0.25
    assert record.correct_rows("test").sum() == 100
    assert [failure.reason for failure in again.failed()] == ["out of memory"]
    assert again.done(OTHER) is None


@pytest.mark.parametrize("kept", [1, 40, -2])
def test_a_line_cut_short_is_forgotten_and_written_over(tmp_path: Path, kept: int) -> None:
    ledger = empty_ledger(tmp_path)
    ledger.add(done(ONE))
    whole = ledger.path.read_bytes()
    ledger.add(done(OTHER))
    ledger.path.write_bytes(whole + ledger.path.read_bytes()[len(whole) :][:kept])
    again = Ledger(ledger.path)
    assert again.done(ONE) is not None and again.done(OTHER) is None
    again.add(done(OTHER, dev=0.75))
    last = Ledger(ledger.path).done(OTHER)
    assert last is not None and last.dev == 0.75
    assert len(ledger.path.read_bytes().splitlines()) == 2


def test_a_damaged_line_is_reported_with_its_number(tmp_path: Path) -> None:
    ledger = empty_ledger(tmp_path)
    ledger.add(done(ONE))
    ledger.path.write_bytes(ledger.path.read_bytes() + b'{"key": 1}\n')
    with pytest.raises(FolderError, match=r"cells\.jsonl, line 2, is not a record"):
        Ledger(ledger.path)


def test_equal_settings_are_one_cell_in_whatever_order_they_are_given() -> None:
    settings = ("pooling.heads=5", "training.epochs=1")
    first = Cell("tiny", "snli", "generalized", "rules", settings, 0)
    again = Cell("tiny", "snli", "vector", "rules", ("pooling.heads=3", *settings[::-1]), 0)
    assert first.key == again.key
    assert first.key != Cell("tiny", "snli", "generalized", "rules", settings, 1).key
    assert first.key != Cell("tiny", "age", "generalized", "rules", settings, 0).key
