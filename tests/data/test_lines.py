"""Texts, one per line."""

from __future__ import annotations

import io
import sys

import pytest

from genpool.data import Example, LinesReader
from genpool.errors import DataError


def test_every_line_is_an_example_also_an_empty_one(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("I love it.\n\na\tb\n", encoding="utf-8")
    reader = LinesReader(path)
    examples = [Example(None, "I love it."), Example(None, ""), Example(None, "a\tb")]
    assert list(reader.read("all")) == examples
    assert (reader.splits(), reader.is_pair, reader.place) == (["all"], False, path)


def test_a_line_of_a_pair_has_a_tab_between_its_sentences(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("a dog\tan animal\na man\n", encoding="utf-8")
    reader = LinesReader(path, is_pair=True, bad_rows="skip")
    assert list(reader.read("all")) == [Example(None, "a dog", "an animal")]
    assert reader.skipped == {"wrong number of fields": 1}
    with pytest.raises(DataError, match=r"pairs\.txt, line 2: has 1 sentence; expected two"):
        list(LinesReader(path, is_pair=True).read("all"))


def test_a_check_takes_nothing_from_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo\n")))
    reader = LinesReader("-")
    reader.check()
    assert [example.first for example in reader.read("all")] == ["one", "two"]
    assert reader.place == "standard input"


def test_a_missing_file_and_an_unknown_split_are_told(tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        LinesReader(tmp_path / "texts.txt")
    (tmp_path / "texts.txt").write_text("")
    with pytest.raises(DataError, match="unknown split 'test'"):
        LinesReader(tmp_path / "texts.txt").check("test")
