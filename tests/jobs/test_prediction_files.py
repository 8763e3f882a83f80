"""Predictions with their texts, in four formats."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

from genpool.errors import InputError, MissingExtraError
from genpool.evaluation import Predictions, read_predictions
from genpool.jobs.tables import TablePredictions

PREDICTIONS = Predictions(
    ("7", "x, y"),
    ("good", None),
    ("good", "bad"),
    ("bad", "good"),
    ((0.1, 0.9), (0.123456789, 0.876543211)),
)
TEXTS = {"text": ['A "fine"\tfilm,\nreally; 5 €', ""]}
COLUMNS = ["id", "gold", "predicted", "text", "p:bad", "p:good"]


def write_table(
    path: Path, predictions: Predictions = PREDICTIONS, texts: dict[str, list[str]] = TEXTS
) -> None:
    TablePredictions(predictions, [], texts=texts).write(path)


def read_csv(path: Path) -> list[dict[str, object]]:
    with path.open(newline="", encoding="utf-8") as file:
        rows: list[dict[str, object]] = list(csv.DictReader(file))
    return [
        {name: float(str(cell)) if name[:2] == "p:" else cell or None for name, cell in row.items()}
        for row in rows
    ]


def read_jsonl(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("suffix", "read"),
    [
        ("csv", read_csv),
        ("jsonl", read_jsonl),
        ("parquet", lambda path: parquet.read_table(path).to_pylist()),
    ],
)
def test_every_format_keeps_every_character_and_a_missing_label(tmp_path, suffix, read):
    write_table(tmp_path / f"p.{suffix}")
    one, two = read(tmp_path / f"p.{suffix}")
    assert list(one) == list(two) == COLUMNS
    assert list(one.values())[:4] == ["7", "good", "good", TEXTS["text"][0]]
    assert list(two.values())[:3] == ["x, y", None, "bad"] and not two["text"]
    numbers = [*one.values()][4:] + [*two.values()][4:]
    rounding = 1e-7 if suffix == "parquet" else 1e-15  # 32 bits, or nine digits
    assert numbers == pytest.approx([0.1, 0.9, 0.123456789, 0.876543211], rel=rounding)
    assert suffix != "jsonl" or "€" in (tmp_path / "p.jsonl").read_text(encoding="utf-8")


def test_tsv_is_a_prediction_file_whose_texts_are_on_one_line(tmp_path):
    write_table(tmp_path / "p.tsv")
    header, first, second = (tmp_path / "p.tsv").read_text(encoding="utf-8").splitlines()
    assert header.split("\t") == COLUMNS
    assert first.split("\t") == ["7", "good", "good", 'A "fine" film, really; 5 €', "0.1", "0.9"]
    assert second.split("\t")[3] == ""
    assert read_predictions(tmp_path / "p.tsv") == PREDICTIONS


def test_no_rows_are_a_table_with_a_header(tmp_path):
    empty = Predictions((), (), (), ("bad", "good"), ())
    write_table(tmp_path / "p.csv", empty, {"text": []})
    assert (tmp_path / "p.csv").read_text() == ",".join(COLUMNS) + "\n"
    write_table(tmp_path / "p.parquet", empty, {"text": []})
    assert parquet.read_table(tmp_path / "p.parquet").num_rows == 0


def test_another_format_and_parquet_without_its_extra_are_told(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"ends in '\.xlsx'; .* \.tsv, \.csv, \.jsonl, \.parquet"):
        write_table(tmp_path / "p.xlsx")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"'genpool\[parquet\]'"):
        write_table(tmp_path / "p.parquet")
    assert list(tmp_path.iterdir()) == []


def test_half_a_character_is_told_and_an_earlier_file_kept(tmp_path):
    (tmp_path / "p.csv").write_text("earlier")
    with pytest.raises(InputError, match="cannot be written as UTF-8"):
        write_table(tmp_path / "p.csv", PREDICTIONS, {"text": ["a\ud83d", ""]})
    assert (tmp_path / "p.csv").read_text() == "earlier"
