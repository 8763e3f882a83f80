"""genpool train on a table of one's own: its columns, its encoding, its format."""

from __future__ import annotations

from pathlib import Path

import pytest

from genpool import SentenceEncoder
from tests.helpers.commands import Command

ROWS = [("gut", "Ein schöner Film"), ("schlecht", "Nie wieder, so öde")] * 10
QUICK = ("--set", "training.epochs=1", "--set", "classifier.hidden_dim=4", "--quiet")


@pytest.fixture
def folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sentence_encoder: SentenceEncoder
) -> Path:
    """The current folder, with the small encoder `small`."""
    monkeypatch.chdir(tmp_path)
    sentence_encoder.save_pretrained(tmp_path / "small")
    return tmp_path


def as_csv(rows: list[tuple[str, str]], delimiter: str = ";") -> str:
    lines = [("urteil", "meinung"), *rows]
    return "".join(f'{label}{delimiter}"{text}"\n' for label, text in lines)


COLUMNS = ("--first", "meinung", "--label", "urteil")


def test_a_table_of_a_spreadsheet_program_is_trained_on_and_evaluated(
    genpool: Command, folder: Path
) -> None:
    (folder / "films.csv").write_bytes(as_csv(ROWS).encode("cp1252"))
    asked = ("train", "texts", "--data", "films.csv", "--start", "small", "--out", "run", *COLUMNS)
    said = genpool(*asked, *QUICK)
    assert said.code == 2
    assert "films.csv, line 2: is not UTF-8" in said.err
    assert "--encoding cp1252" in said.err
    said = genpool(*asked, *QUICK, "--encoding", "cp1252")
    assert said.code == 0, said.err
    said = genpool("evaluate", "run/best", "films.csv", "--encoding", "cp1252")
    assert said.code == 0, said.err
    assert "of 20;" in said.out


@pytest.mark.slow
def test_an_excel_file_is_trained_on(genpool: Command, folder: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [("label", "text"), *ROWS]:
        book.active.append(row)
    book.save(folder / "films.xlsx")
    said = genpool("train", "texts", "--data", "films.xlsx", "--start", "small", *QUICK)
    assert said.code == 0, said.err
    assert "dev accuracy" in said.out


def test_wrong_columns_are_told_before_a_missing_dev_set(genpool: Command, folder: Path) -> None:
    (folder / "films.csv").write_text(as_csv(ROWS), encoding="utf-8")
    # A recipe that does not hold rows out by itself: its complaint about dev comes second.
    asked = ("train", "sst5", "--data", "films.csv", "--set", "embedding.frozen=false", *QUICK)
    said = genpool(*asked, "--first", "meinungen", "--label", "urteile")
    assert said.code == 2
    assert "unknown columns 'urteile' (did you mean 'urteil'?), 'meinungen' (did you" in said.err
    said = genpool(*asked, *COLUMNS)
    assert "no dev set" in said.err
    assert not (folder / "runs").exists()


def test_a_wrong_column_of_the_test_table_is_told_before_training(
    genpool: Command, folder: Path
) -> None:
    (folder / "films").mkdir()
    for name in ("train", "dev"):
        (folder / "films" / f"{name}.csv").write_text(as_csv(ROWS), encoding="utf-8")
    (folder / "films" / "test.csv").write_text("label;text\ngut;Ein Film\n", encoding="utf-8")
    said = genpool("train", "texts", "--data", "films", "--start", "small", *COLUMNS, *QUICK)
    assert said.code == 2
    assert "test.csv, line 1: unknown columns 'urteil', 'meinung'" in said.err
