"""The data sets that a reproduction makes: every row once, on one side, as it was written."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from genpool.data import TableReader
from genpool.experiments import data as made
from genpool.experiments.data import mixed_nli

HEADER = "label\tpremise\thypothesis\n"


def _write(path: Path, rows: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = HEADER + "".join(f"neutral\t{row}\tyes\n" for row in rows)
    path.write_bytes(lzma.compress(text.encode()))


def _premises(folder: Path, split: str) -> list[str]:
    return [example.first for example in TableReader(folder).read(split)]


def test_rows_of_multinli_are_divided_and_quotes_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made, "HELD_OUT", 2)
    matched = [f'he said "word {number}", twice' for number in range(7)]
    for name, rows in (
        ("snli/train", ["a pair of snli"]),
        ("mnli/dev_matched", matched),
        ("mnli/dev_mismatched", ['"quoted"', "it's"]),
    ):
        _write(tmp_path / f"{name}.tsv.xz", rows)
    mixed_nli(tmp_path, tmp_path / "mixed")
    train = _premises(tmp_path / "mixed", "train")
    parts = [train[1:], *(_premises(tmp_path / "mixed", split) for split in ("dev", "in"))]
    assert train[0] == "a pair of snli"
    assert [len(part) for part in parts] == [3, 2, 2]
    assert sorted(row for part in parts for row in part) == matched
    assert _premises(tmp_path / "mixed", "cross") == ['"quoted"', "it's"]
