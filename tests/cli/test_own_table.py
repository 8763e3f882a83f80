"""genpool train on a table of one's own: its columns, its encoding, its format."""

from __future__ import annotations

from pathlib import Path

import pytest

from genpool import SentenceEncoder

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


def test_a_table_of_a_spreadsheet_program_is_trained_on_and_evaluated(genpool, folder):
    (folder / "films.csv").write_bytes(as_csv(ROWS).encode("cp1252"))
    asked = ("train", "texts", "--data", "films.csv", "--start", "small", "--out", "run", *COLUMNS)
    genpool(*asked, *QUICK).refused("films.csv, line 2: is not UTF-8", "--encoding cp1252")
    genpool(*asked, *QUICK, "--encoding", "cp1252").ok()
    said = genpool("evaluate", "run/best", "films.csv", "--encoding", "cp1252").ok()
    assert "of 20;" in said.out


def test_wrong_columns_are_told_before_a_missing_dev_set(genpool, folder):
    (folder / "films.csv").write_text(as_csv(ROWS), encoding="utf-8")
    # A recipe that does not hold rows out by itself: its complaint about dev comes second.
    asked = ("train", "sst5", "--data", "films.csv", "--set", "embedding.frozen=false", *QUICK)
    genpool(*asked, "--first", "meinungen", "--label", "urteile").refused(
        "unknown column 'urteile'. Did you mean 'urteil'?",
        "unknown column 'meinungen'. Did you mean 'meinung'?",
    )
    said = genpool(*asked, *COLUMNS)
    assert "no dev set" in said.err
    assert not (folder / "runs").exists()


def test_a_wrong_column_of_the_test_table_is_told_before_training(genpool, folder):
    (folder / "films").mkdir()
    for name in ("train", "dev"):
        (folder / "films" / f"{name}.csv").write_text(as_csv(ROWS), encoding="utf-8")
    (folder / "films" / "test.csv").write_text("label;text\ngut;Ein Film\n", encoding="utf-8")
    genpool("train", "texts", "--data", "films", "--start", "small", *COLUMNS, *QUICK).refused(
        "test.csv, line 1: unknown column 'urteil'"
    )
