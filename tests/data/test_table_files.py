"""Parquet and Excel files, and slices of any file of rows."""

from __future__ import annotations

import datetime
import gzip
import json
import sys
from itertools import chain
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from genpool.data import Example, TableReader
from genpool.data.reader import BadRow, Record
from genpool.data.table_files import NO_OFFSET, RowFile
from genpool.errors import DataError, MissingExtraError


def read(path, **options):
    return list(TableReader(path, **options).read("all"))


def pairs(examples):
    return [(example.label, example.first) for example in examples]


def write_parquet(path, columns, row_group_size=2):
    parquet.write_table(pyarrow.table(columns), path, row_group_size=row_group_size)
    return path


def test_parquet_is_read_by_the_chosen_columns_and_compressed_up_to_a_limit(tmp_path, monkeypatch):
    columns = {"label": [0, 1, 0], "text": ["a", "b", "c"], "junk": [[1], [2], [3]]}
    path = write_parquet(tmp_path / "t.parquet", columns)
    assert pairs(read(path)) == [("0", "a"), ("1", "b"), ("0", "c")]
    packed = tmp_path / "t.parquet.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert pairs(read(packed)) == pairs(read(path))
    monkeypatch.setattr("genpool.disk.files.FREE_BYTES", 0)
    monkeypatch.setattr("genpool.disk.files.MAX_EXPANSION", 1)
    with pytest.raises(DataError, match="expands to more than"):
        read(packed)


def test_a_bad_row_of_parquet_is_located_by_its_row(tmp_path):
    columns = {"label": ["x"] * 2000, "text": ["a"] * 1500 + [None] + ["a"] * 499}
    path = write_parquet(tmp_path / "t.parquet", columns)
    with pytest.raises(DataError, match="line 1501: column 'text' is empty"):
        read(path)
    reader = TableReader(path, bad_rows="skip")
    assert sum(1 for _ in reader.read("all")) == 1999


def test_bad_utf8_in_parquet_spoils_its_row_only(tmp_path):
    raw = pyarrow.array([b"a", b"caf\xe9", b"c"], pyarrow.binary())
    text = pyarrow.Array.from_buffers(pyarrow.string(), 3, raw.buffers())
    path = write_parquet(tmp_path / "t.parquet", {"label": ["x", "y", "z"], "text": text})
    reader = TableReader(path, bad_rows="skip")
    assert pairs(reader.read("all")) == [("x", "a"), ("z", "c")]
    assert reader.skipped == {"bad UTF-8": 1}


def save(path, rows, other_sheet=()):
    book = pytest.importorskip("openpyxl").Workbook()
    second = book.create_sheet("second")
    for sheet, cells in ((book.active, rows), (second, other_sheet)):
        for row in cells:
            sheet.append(row)
    book.save(path)
    return path


def test_the_first_sheet_is_a_table_with_a_header(tmp_path):
    rows = [("label", "text", "score"), ("gut", "Ein schöner Film\n(neu)", 2.5), (5, 2020, 1)]
    path = save(tmp_path / "t.xlsx", rows)
    assert read(path) == [
        Example("gut", "Ein schöner Film\n(neu)", score=2.5),
        Example("5", "2020", score=1.0),
    ]
    # Cells at the end of a row may never have been filled.
    path = save(tmp_path / "t.xlsx", [("text", "label", "id"), ("one", "yes", 7), ("two",)])
    assert read(path, labelled=False) == [Example("yes", "one", id="7"), Example(None, "two")]


def test_another_sheet_is_named(tmp_path):
    path = save(tmp_path / "t.xlsx", [("label", "text")], [("label", "text"), ("yes", "one")])
    assert read(path) == []
    assert read(path, sheet="second") == [Example("yes", "one")]
    with pytest.raises(DataError, match=r"unknown sheet 'secund'. Did you mean 'second'?"):
        read(path, sheet="secund")


def test_rows_above_the_header_and_below_the_data_may_be_empty(tmp_path):
    rows = [(None, None), ("label", "text"), ("yes", "one"), (None, None), ("no", "two")]
    path = save(tmp_path / "t.xlsx", [*rows, (None, None), (None, None)])
    expected = [("yes", "one"), (None, ""), ("no", "two")]
    assert pairs(read(path, labelled=False, empty_texts=True)) == expected
    with pytest.raises(DataError, match="line 4: column 'label' is empty"):
        read(path)
    path = save(tmp_path / "t.xlsx", [("label", "text"), ("yes", datetime.datetime(2020, 1, 2))])
    with pytest.raises(DataError, match="line 2: column 'text' holds a datetime; expected text"):
        read(path)


def test_a_folder_of_sheets_has_a_split_for_each(tmp_path):
    for name in ("train.xlsx", "val.xlsx"):
        save(tmp_path / name, [("label", "text"), ("yes", name)])
    (tmp_path / "~$train.xlsx").write_bytes(b"the lock of an open file")
    reader = TableReader(tmp_path)
    assert reader.splits() == ["train", "dev"]
    assert [example.first for example in reader.read("dev")] == ["val.xlsx"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("t.parquet", "is not a Parquet file that can be read"),
        ("t.xlsx", r"is not an Excel file that can be read.*as \.csv"),
        ("t.xls", r"spreadsheet of a kind that is not read.*\.xlsx or as"),
        ("t.ods", r"spreadsheet of a kind that is not read.*\.xlsx or as"),
    ],
)
def test_a_file_of_another_kind_is_a_data_error(tmp_path, name, message):
    (tmp_path / name).write_text("label\ttext\n" * 100)
    with pytest.raises(DataError, match=message):
        read(tmp_path / name)


def test_a_missing_column_or_header_is_named(tmp_path):
    path = write_parquet(tmp_path / "t.parquet", {"label": ["x"], "text": ["a"]})
    with pytest.raises(DataError, match=r"t\.parquet: unknown column 'txt'"):
        read(path, first="txt")
    path = save(tmp_path / "t.xlsx", [("label", None, "text"), ("yes", "x", "one")])
    with pytest.raises(DataError, match=r"line 1: unknown column 'body'.* Known: label, text"):
        read(path, first="body")
    with pytest.raises(DataError, match="is empty; expected a first row with the names"):
        read(save(tmp_path / "t.xlsx", []))


@pytest.mark.parametrize(
    ("name", "package", "message"),
    [
        ("t.parquet", "pyarrow", r"reading Parquet.*pip install 'genpool\[parquet\]'"),
        ("t.xlsx", "openpyxl", r"save it as .*\.csv.*'genpool\[excel\]'"),
    ],
)
def test_without_the_extra_the_error_has_the_pip_line(
    tmp_path, monkeypatch, name, package, message
):
    (tmp_path / name).touch()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=message):
        read(tmp_path / name)


TEXTS = ['quoted "x", y', "two\nlines", "", "naïve", "plain", "  spaces ", "a b"]
QUOTED = ['"' + text.replace('"', '""') + '"' for text in TEXTS]
CSV = ("text,n\n\n" + "".join(f"{text},{n}\n" for n, text in enumerate(QUOTED))).encode()
FILES = {
    "rows.csv": CSV,
    "rows.csv.gz": gzip.compress(CSV),
    "rows.tsv": b"text\tn\n" + b"".join(b"x%d\t%d\n\n" % (n, n) for n in range(7)),
    "cells.tsv": b"text\n" + b"".join(b"x%d\n\n" % n for n in range(5)),
    "rows.jsonl": "\n\n".join(json.dumps({"text": text}) for text in TEXTS).encode(),
    "lines.txt": "\ufeff".encode() + b"a dog\r\n\nthe man\nlast",
}


def whole(path: Path) -> list[Record]:
    scan = RowFile(path, ["text"]).scan(10**6)
    return list(RowFile(path, ["text"]).read(scan.starts[0], scan.rows, scan.head_lines))


@pytest.mark.parametrize("rows", [1, 3, 100])
@pytest.mark.parametrize("name", FILES)
def test_slices_are_the_file(tmp_path, name, rows):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    file = RowFile(path, ["text"])
    scan = file.scan(rows)
    slices = [
        list(file.read(start, min(rows, scan.rows - start.row), scan.head_lines))
        for start in scan.starts
    ]
    assert [len(part) for part in slices[:-1]] == [rows] * (len(slices) - 1)
    assert list(chain.from_iterable(slices)) == whole(path)


def test_the_rows_of_a_csv_file_are_those_that_were_written(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(CSV)
    texts = [record.values["text"] for record in whole(path)]  # type: ignore[index]
    assert texts == TEXTS
    scan = RowFile(path, ["text"]).scan(3)
    for start in scan.starts:  # the offset is that of the line, counted by hand
        assert CSV[: start.offset].count(b"\n") == start.line - 1
        assert CSV[start.offset :].decode().startswith(QUOTED[start.row])


def test_rows_of_parquet_are_found_without_reading_what_is_before_them(tmp_path):
    columns = {"text": [f"x{n}" for n in range(95)], "n": range(95)}
    path = write_parquet(tmp_path / "rows.parquet", columns, row_group_size=10)
    file = RowFile(path, ["text", "n"])
    scan = file.scan(7)
    assert scan.rows == 95
    for start in scan.starts:
        read = list(file.read(start, 7, 0))
        expected = range(start.row, min(start.row + 7, 95))
        assert [record.values["n"] for record in read] == list(expected)  # type: ignore[index]
        assert [record.line for record in read] == [row + 1 for row in expected]
    # A damaged first row group does not keep the others from being read.
    data = bytearray(path.read_bytes())
    data[4:60] = bytes(56)
    path.write_bytes(data)
    assert len(list(file.read(scan.starts[5], 7, 0))) == 7
    with pytest.raises(DataError, match=r"rows\.parquet: .*(damaged|not a Parquet file)"):
        list(file.read(scan.starts[0], 7, 0))


def test_a_bad_row_has_its_line_in_any_slice(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b'text,n\n"a\nb",1\nc\nd,3\ncaf\xe9,4\n')
    file = RowFile(path, ["text"])
    scan = file.scan(1)
    rows = [next(file.read(start, 1, scan.head_lines)) for start in scan.starts]
    assert [row.line for row in rows] == [2, 4, 5, 6]
    assert [isinstance(row.values, BadRow) for row in rows] == [False, True, False, True]


def test_what_cannot_be_gone_to_is_read_from_the_start(tmp_path):
    (tmp_path / "a.txt").touch()
    assert RowFile(tmp_path / "a.txt", ["text"]).scan(5).starts == []
    path = tmp_path / "rows.csv"
    path.write_bytes("text,n\na,1\nb,2\nc,3\n".encode("utf-16"))
    file = RowFile(path, ["text"], "utf-16")
    scan = file.scan(2)
    assert [start.offset for start in scan.starts] == [NO_OFFSET] * 2
    assert [row.values for row in file.read(scan.starts[1], 1, scan.head_lines)] == [
        {"text": "c", "n": "3"}
    ]
