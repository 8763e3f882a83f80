"""Readers by name, and the interface that they share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import genpool.data
from genpool.data import READERS, BadRow, Example, Reader, Record, TableReader, open_reader
from genpool.errors import ConfigError, DataError


def test_a_reader_is_opened_by_name_with_its_options(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("class,text\nyes,one\n")
    reader = open_reader("table", path, label="class", bad_rows="skip")
    assert isinstance(reader, TableReader)
    assert [example.label for example in reader.read("all")] == ["yes"]


def test_unknown_names_give_the_nearest_and_all_of_them(tmp_path):
    with pytest.raises(ConfigError, match=r"unknown reader 'snly'\. Did you mean 'snli'") as caught:
        open_reader("snly", tmp_path)
    assert all(name in str(caught.value) for name in READERS)
    with pytest.raises(ConfigError) as caught:
        open_reader("table", tmp_path / "not there", sheets=3, quote=True, label="x")
    assert len(caught.value.problems) == 2
    assert "unknown table option 'sheets'. Did you mean 'sheet'?" in caught.value.problems[0]
    assert "unknown table option 'quote'. Did you mean 'quotes'?" in caught.value.problems[1]


def test_every_reader_can_skip_bad_rows_and_only_multinli_has_a_submission_file():
    for name in READERS:
        assert "bad_rows" in READERS.options(name)
    assert {name for name, kind in READERS.items() if kind.write_submission} == {"multinli"}


@pytest.fixture
def tables(tmp_path):
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.tsv").write_text("label\ttext\nyes\tone\n")
    return tmp_path


def test_a_split_is_chosen_by_name_or_is_the_only_one_or_a_usual_one(tables):
    reader = TableReader(tables)
    assert reader.choose_split("train") == "train"
    assert reader.choose_split(None, ("test", "dev")) == "test"
    (tables / "test.tsv").unlink()
    assert TableReader(tables).choose_split(None, ("test", "dev")) == "dev"
    assert TableReader(tables / "dev.tsv").choose_split() == "all"
    with pytest.raises(DataError, match=r"unknown split 'tset'\. Did you mean 'test'"):
        reader.choose_split("tset")
    with pytest.raises(DataError, match=r"has several splits: train, dev, test; choose one"):
        reader.choose_split()


def test_a_check_finds_a_missing_column_and_reads_no_row(tables):
    (tables / "dev.tsv").write_text("label\ttext\nonly one field\n")
    TableReader(tables).check("dev")
    with pytest.raises(DataError, match=r"dev\.tsv, line 1: unknown column 'body'"):
        TableReader(tables, first="body").check("dev")
    (tables / "test.tsv").write_text("label\tbody\nyes\tone\n")
    with pytest.raises(DataError, match=r"test\.tsv, line 1: no column of text"):
        TableReader(tables).check()
    with pytest.raises(DataError, match="unknown split 'evaluation'"):
        TableReader(tables).check("evaluation")


def test_importing_the_readers_does_not_load_optional_packages():
    program = "import sys, genpool.data; print({'pyarrow', 'datasets'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "set()\n"


@pytest.fixture
def stars_reader():
    """A user's reader of lines such as "good film|5", registered for one test."""

    @genpool.data.register("stars")
    class StarsReader(Reader):
        is_pair = False

        def __init__(self, path=None, *, separator: str = "|", bad_rows="error"):
            super().__init__(path, bad_rows=bad_rows)
            self._separator = separator

        def splits(self):
            return ["train", "dev"]

        def records(self, split):
            path = Path(str(self.place)) / f"{split}.txt"
            for number, line in enumerate(path.read_text().splitlines(), start=1):
                yield Record(path, number, {"line": line})

        def example(self, values, split):
            text, found, stars = values["line"].partition(self._separator)
            if not found:
                raise BadRow("no stars", f"has no {self._separator!r}")
            return Example(stars, text)

    yield StarsReader
    del READERS["stars"], READERS.plugins["stars"]


def test_a_reader_of_the_users_own_has_its_options(tmp_path, stars_reader):
    (tmp_path / "train.txt").write_text("a film/5\na row without stars")
    reader = open_reader("stars", tmp_path, separator="/", bad_rows="skip")
    assert list(reader.read("train")) == [Example("5", "a film")]
    assert reader.skipped == {"no stars": 1}
    with pytest.raises(ConfigError, match=r"unknown .*'separate'.*Did you mean 'separator'"):
        open_reader("stars", tmp_path, separate="/")


def test_registering_a_taken_name_or_another_class_is_refused(stars_reader):
    with pytest.raises(ConfigError, match=r"reader 'table', which is the name of genpool\.data"):
        genpool.data.register("table", stars_reader)
    with pytest.raises(ConfigError, match=r"expected a subclass of genpool\.data\.reader\.Reader"):
        genpool.data.register("dictionary", dict)
