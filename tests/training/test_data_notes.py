"""What is said about the training rows, on rows worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from genpool.training.preparation import FEW_ROWS_FOR_SCRATCH, data_notes, prepare
from tests.helpers.training_runs import settings, write_table


def notes_of(
    tmp_path: Path, rows: Sequence[tuple[str, ...]], header: tuple[str, ...]
) -> dict[str, str]:
    (tmp_path / "data").mkdir()
    write_table(tmp_path / "data" / "train.tsv", rows, header)
    write_table(tmp_path / "data" / "dev.tsv", rows[:1], header)
    prepared = prepare(settings(), tmp_path / "data")
    return data_notes(prepared.train, prepared.model.labels, from_scratch=False)


def test_equal_texts_with_different_labels_are_counted(tmp_path: Path) -> None:
    rows = [
        ("a", "one film"),
        ("b", "one film"),
        ("a", "one film"),
        ("a", "two films"),
        ("a", "two films"),  # the same label: no contradiction
        ("b", "film one"),  # other words in this order
        ("b", "three"),
        ("a", "three"),
    ]
    notes = notes_of(tmp_path, rows, ("label", "text"))
    assert notes == {"duplicate texts": "2 with different labels (5 rows)"}


def test_pairs_contradict_each_other_only_if_both_sides_are_equal(tmp_path: Path) -> None:
    header = ("label", "sentence1", "sentence2")
    rows = [("a", "x y", "z"), ("b", "x", "y z"), ("a", "p", "q"), ("b", "p", "q"), ("b", "q", "p")]
    notes = notes_of(tmp_path, rows, header)
    assert notes == {"duplicate texts": "1 with different labels (2 rows)"}


def test_labels_with_one_row_are_named(tmp_path: Path) -> None:
    many = [(label, f"text {label}") for label in "cdefghi"]
    notes = notes_of(tmp_path, [("a", "p"), ("a", "q"), *many], ("label", "text"))
    assert notes["labels with one row"].startswith("'c', 'd', 'e', 'f', 'g', ...: too few")


def test_few_rows_for_new_weights_are_told(tables: Path, tmp_path: Path) -> None:
    prepared = prepare(settings(), tables)
    warning = prepared.notes["warning"]
    assert warning.startswith("48 training rows are few for new weights")
    assert "--start embedded" in warning
    assert "warning" not in data_notes(prepared.train, prepared.model.labels, from_scratch=False)
    assert FEW_ROWS_FOR_SCRATCH > 1000
