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


def test_csv_keeps_every_character(tmp_path):
    write_table(tmp_path / "p.csv")
    with (tmp_path / "p.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == COLUMNS
    assert [row["text"] for row in rows] == TEXTS["text"]
    assert [row["id"] for row in rows] == ["7", "x, y"]
    assert [row["gold"] for row in rows] == ["good", ""]
    assert float(rows[1]["p:good"]) == 0.876543211


def test_json_lines_keep_every_character_and_a_missing_label(tmp_path):
    write_table(tmp_path / "p.jsonl")
    lines = (tmp_path / "p.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0]) == {
        "id": "7",
        "gold": "good",
        "predicted": "good",
        "text": TEXTS["text"][0],
        "p:bad": 0.1,
        "p:good": 0.9,
    }
    assert json.loads(lines[1])["gold"] is None
    assert "€" in lines[0]


def test_parquet_has_the_same_columns(tmp_path):
    write_table(tmp_path / "p.parquet")
    table = parquet.read_table(tmp_path / "p.parquet")
    assert table.column_names == COLUMNS
    assert table["text"].to_pylist() == TEXTS["text"]
    assert table["gold"].to_pylist() == ["good", None]
    assert table["p:good"].to_pylist() == pytest.approx([0.9, 0.876543211])


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
