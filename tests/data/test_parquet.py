"""Parquet tables, and the extra that reads them."""

from __future__ import annotations

import gzip
import sys

import pytest

from genpool.data import TableReader
from genpool.errors import DataError, MissingExtraError


def read(path, split="all", **options):
    return list(TableReader(path, **options).read(split))


def pairs(examples):
    return [(example.label, example.first) for example in examples]


def write_parquet(path, columns):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), path, row_group_size=2)
    return path


def test_parquet_is_read_by_the_chosen_columns(tmp_path):
    columns = {"label": [0, 1, 0], "text": ["a", "b", "c"], "junk": [[1], [2], [3]]}
    path = write_parquet(tmp_path / "t.parquet", columns)
    assert pairs(read(path)) == [("0", "a"), ("1", "b"), ("0", "c")]


def test_parquet_inside_gzip_is_read_too(tmp_path):
    path = write_parquet(tmp_path / "t.parquet", {"label": ["x"], "text": ["a"]})
    packed = tmp_path / "t.parquet.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert pairs(read(packed)) == [("x", "a")]


def test_a_bad_row_of_parquet_is_located_by_its_row(tmp_path):
    columns = {"label": ["x"] * 2000, "text": ["a"] * 1500 + [None] + ["a"] * 499}
    path = write_parquet(tmp_path / "t.parquet", columns)
    with pytest.raises(DataError, match="line 1501: column 'text' is empty"):
        read(path)
    reader = TableReader(path, bad_rows="skip")
    assert sum(1 for _ in reader.read("all")) == 1999


def test_bad_utf8_in_parquet_spoils_its_row_only(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    raw = pyarrow.array([b"a", b"caf\xe9", b"c"], pyarrow.binary())
    text = pyarrow.Array.from_buffers(pyarrow.string(), 3, raw.buffers())
    path = write_parquet(tmp_path / "t.parquet", {"label": ["x", "y", "z"], "text": text})
    reader = TableReader(path, bad_rows="skip")
    assert pairs(reader.read("all")) == [("x", "a"), ("z", "c")]
    assert reader.skipped == {"bad UTF-8": 1}


def test_a_file_that_is_not_parquet_is_a_data_error(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    path.write_text("label\ttext\n" * 100)
    with pytest.raises(DataError, match="is not a Parquet file that can be read"):
        read(path)


def test_a_missing_parquet_column_is_named(tmp_path):
    path = write_parquet(tmp_path / "t.parquet", {"label": ["x"], "text": ["a"]})
    with pytest.raises(DataError, match=r"t\.parquet: unknown column 'txt'"):
        read(path, first="txt")


def test_without_pyarrow_the_pip_line_is_given(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    path.touch()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingExtraError, match=r"reading Parquet.*pip install 'genpool\[parquet\]'"
    ):
        read(path)
