"""The data sets that a reproduction makes: every row once, on one side, as it was written."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from genpool.data import TableReader
from genpool.reproduction import data_sets
from genpool.reproduction.data_sets import mixed_nli, tokenized_texts
from genpool.text import WordTokenizer


def _premises(folder: Path, split: str) -> list[str]:
    return [example.first for example in TableReader(folder).read(split)]


def test_rows_of_multinli_are_divided_and_quotes_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_sets, "HELD_OUT", 2)
    # In tokens, which are split from punctuation; quotes stay as they are.
    matched = [f'he said " word {number} " , twice' for number in range(7)]
    for name, rows in (
        ("snli/train", ["a pair of snli"]),
        ("mnli/dev_matched", [row.replace('" word', '"word') for row in matched]),
        ("mnli/dev_mismatched", ['"quoted"', "it's"]),
    ):
        lines = "".join(f"neutral\t{row}\tyes\n" for row in rows)
        path = tmp_path / f"{name}.tsv.xz"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(lzma.compress(f"label\tpremise\thypothesis\n{lines}".encode()))
    mixed_nli(tmp_path, tmp_path / "mixed")
    train = _premises(tmp_path / "mixed", "train")
    parts = [train[1:], *(_premises(tmp_path / "mixed", split) for split in ("dev", "in"))]
    assert train[0] == "a pair of snli"
    assert [len(part) for part in parts] == [3, 2, 2]
    assert sorted(row for part in parts for row in part) == matched
    assert _premises(tmp_path / "mixed", "cross") == ['" quoted "', "it 's"]


def test_texts_are_tokenized_once_and_training_rows_are_drawn(tmp_path: Path) -> None:
    texts = {
        "train": [f"It's number {number}, isn't it?" for number in range(9)],
        "dev": ["Don't go."],
        "test": ['A "quote"...', "two"],
    }
    (tmp_path / "texts").mkdir()
    for split, rows in texts.items():
        lines = "".join(f"{row % 2}\t{text}\n" for row, text in enumerate(rows))
        (tmp_path / "texts" / f"{split}.tsv").write_text("label\ttext\n" + lines, encoding="utf-8")
    tokenizer = WordTokenizer()
    expected = {
        split: [" ".join(tokenizer.words(text)) for text in rows] for split, rows in texts.items()
    }
    assert expected["dev"] == ["Do n't go ."]
    tokenized_texts(tmp_path, tmp_path / "all", "texts")
    tokenized_texts(tmp_path, tmp_path / "drawn", "texts", train_rows=4)
    for split, rows in expected.items():
        assert _premises(tmp_path / "all", split) == rows
    drawn = list(TableReader(tmp_path / "drawn").read("train"))
    assert len(drawn) == 4
    for example in drawn:
        assert str(example.label) == str(expected["train"].index(example.first) % 2)
