"""The comparisons run, count what they say they count, and their page tells what came out."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.speed import comparisons, encoding, int8, startup, training
from benchmarks.speed.harness import Row, interleaved, ratios, sgemm_work
from benchmarks.speed.sizes import SNLI, SNLI_SORTED, make_batch, make_model

SMALL: dict[str, Any] = {"hidden": 4, "layers": 1, "attention": 4, "examples": 6}


@pytest.fixture(autouse=True)
def little_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A few made-up sentences in place of thousands, and a small multiplication."""
    monkeypatch.setenv("GENPOOL_DATA", str(tmp_path))
    for module in (encoding, training):
        monkeypatch.setattr(module, "sgemm_work", lambda: sgemm_work(64, 64, 64))
    for module in (encoding, int8):
        monkeypatch.setattr(module, "SENTENCES", 96)
    monkeypatch.setattr(encoding, "SLOW_SIDE_SENTENCES", 32)
    monkeypatch.setattr(encoding, "BATCHES", 1)


def test_sides_take_turns_and_a_ratio_is_the_median_of_the_rounds() -> None:
    calls: list[str] = []
    seconds = interleaved({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 3)
    assert calls == ["a", "b"] * 4  # one turn to warm up
    assert {name: len(times) for name, times in seconds.items()} == {"a": 3, "b": 3}
    assert ratios([4.0, 9.0, 2.0], [2.0, 3.0, 2.0]) == (2.0, (1.0, 3.0))
    # A goal is a floor or a ceiling.
    assert [Row("a", ratio, (1, 2), 1.7).met for ratio in (1.7, 1.69)] == [True, False]
    assert [Row("a", at, (0, 1), 0.6, at_most=True).met for at in (0.6, 0.61)] == [True, False]


def test_sorted_batches_have_less_padding() -> None:
    model = make_model(replace(SNLI, **SMALL))

    def filled(size) -> float:
        tokens = room = 0
        for seed in range(5):
            mask = make_batch(model, replace(size, hidden=4, examples=64), seed).mask
            for side in mask.chunk(2):
                length = int(side.sum(dim=1).max())
                tokens, room = tokens + int(side.sum()), room + len(side) * length
        return tokens / room

    assert filled(SNLI_SORTED) > filled(SNLI) + 0.1


def test_rows_of_a_training_step() -> None:
    rows = training.training_rows(replace(SNLI, **SMALL), rounds=2)
    assert [(row.name, row.goal) for row in rows] == [("training-snli", 1.7), ("limit-snli", 0.75)]
    assert all(0 < row.spread[0] <= row.ratio <= row.spread[1] for row in rows)


@pytest.mark.parametrize("name", ["encode-textbook", "int8", "long-sentences"])
def test_a_comparison_is_printed_and_written(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = comparisons.run(name, 1, tmp_path / "rows.json", tmp_path / "page.md")
    assert rows[0].name == name and rows[0].ratio > 0
    listed = json.loads((tmp_path / "rows.json").read_text())
    assert [row["ratio"] for row in listed] == [row.ratio for row in rows]
    assert listed[0]["versions"]["torch"]
    page, printed = (tmp_path / "page.md").read_text(), capsys.readouterr().out
    for row in rows:
        met = "yes" if row.met else "no"
        assert re.search(rf"^\| {row.name} \|.*\| {met} \|", page, re.MULTILINE)
        assert row.name in printed


def test_startup_counts_the_cpu_seconds_of_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = "import time\nwhile time.process_time() < {}: pass"
    monkeypatch.setattr(startup, "TORCH", ("-c", busy.format(0.2)))
    waiting = busy.format(0.4) + "\ntime.sleep(0.4)"  # which takes no CPU time
    monkeypatch.setattr(startup, "STARTS", {"load": ("-c", waiting)})
    (row,) = startup.startup_rows(3)
    assert row.name == "load" and row.ratio == pytest.approx(2, abs=0.4)
    measured, torch = re.findall(r"\d\.\d\d", row.note)
    assert float(measured) / float(torch) == pytest.approx(row.ratio, rel=0.2)
