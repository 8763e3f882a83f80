"""Sentences of a file, one per line or a column of a table, read as a stream and counted."""

from __future__ import annotations

import gzip
import io
import os
import sys
import tracemalloc

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from genpool.data import Example, LinesReader, TableReader
from genpool.data.sentences import column_reader, count_rows, read_rows, read_sentences
from genpool.errors import DataError


def test_every_line_is_an_example_also_an_empty_one(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("I love it.\n\na\tb\n", encoding="utf-8")
    reader = LinesReader(path)
    examples = [Example(None, "I love it."), Example(None, ""), Example(None, "a\tb")]
    assert list(reader.read("all")) == examples
    assert (reader.splits(), reader.is_pair, reader.place) == (["all"], False, path)
    with pytest.raises(DataError, match="unknown split 'test'"):
        reader.check("test")
    with pytest.raises(DataError, match="there is no such file"):
        LinesReader(tmp_path / "none.txt")


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


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"\n", 1),
        (b"a", 1),
        (b"a\n", 1),
        (b"a\n\nb", 3),
        (b"a\r\nb\r\n", 2),
        (b"\xef\xbb\xbfa\nb\n", 2),
        ("a\u2028b\x0cc\n".encode(), 1),
    ],
)
def test_lines_are_counted_as_they_are_read(tmp_path, data, expected):
    plain, packed = tmp_path / "lines.txt", tmp_path / "lines.txt.gz"
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data))
    assert len(list(read_sentences(plain))) == expected
    assert count_rows(LinesReader(plain)) == count_rows(LinesReader(packed)) == expected


def test_rows_of_tables_are_counted_as_they_are_read(tmp_path):
    (tmp_path / "a.csv").write_text('text,n\n"two\nlines",1\n\n,2\n')
    (tmp_path / "a.tsv").write_text("text\tn\na\t1\n\nb\t2\nc\t3\n")
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n\n{"text": null}\n')
    parquet.write_table(arrow.table({"text": ["a", None, "b", "c"]}), tmp_path / "a.parquet")
    for name, expected in {"a.csv": 2, "a.tsv": 3, "a.jsonl": 2, "a.parquet": 4}.items():
        reader = column_reader(tmp_path / name, "text")
        assert count_rows(reader) == len(list(read_rows(reader))) == expected


def test_rows_that_are_skipped_do_not_count(tmp_path):
    (tmp_path / "a.tsv").write_text("text\tn\na\t1\nbroken\nc\t3\n")
    reader = column_reader(tmp_path / "a.tsv", "text", bad_rows="skip")
    assert count_rows(reader) == 2
    list(read_rows(reader))
    assert reader.skipped.total() == 1  # not twice, for the two passes
    with pytest.raises(DataError, match="line 3"):
        count_rows(column_reader(tmp_path / "a.tsv", "text"))


def test_what_can_be_read_only_once_has_no_number(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert count_rows(LinesReader("-")) is None
    assert count_rows(LinesReader(tmp_path / "pipe")) is None


ROWS = 20_000
TEXT = "a sentence of some length that would fill the memory if all of them were kept" * 2


def write_table(path):
    texts = [f"{row} {TEXT}" for row in range(ROWS)]
    if path.suffix == ".parquet":
        table = arrow.table({"label": [row % 3 for row in range(ROWS)], "text": texts})
        parquet.write_table(table, path, row_group_size=5_000)
    else:
        rows = "".join(f"{row % 3}\t{text}\n" for row, text in enumerate(texts))
        path.write_text(f"label\ttext\n{rows}")
    return path


@pytest.mark.parametrize("name", ["large.tsv", "large.parquet"])
def test_memory_does_not_grow_with_the_table(tmp_path, name):
    path = write_table(tmp_path / name)
    tracemalloc.start()
    try:
        assert sum(1 for _ in TableReader(path).read("all")) == ROWS
        assert tracemalloc.get_traced_memory()[1] < 2 << 20  # the texts alone are 3.2 MB
    finally:
        tracemalloc.stop()


def test_the_first_rows_do_not_wait_for_the_last(tmp_path):
    path = write_table(tmp_path / "large.tsv")
    with path.open("ab") as file:
        file.write(b"this row is bad\n")
    rows = TableReader(path).read("all")
    assert [next(rows).label for _ in range(10)] == list("0120120120")
    with pytest.raises(DataError, match=f"line {ROWS + 2}: has 1 fields"):
        list(rows)
