"""Slices of any file of rows, put together, are the file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest

from genpool.data.row_slices import NO_OFFSET, RowFile
from genpool.data.rows import BadRow, Record
from genpool.errors import DataError

TEXTS = [
    'quoted "x", y',
    "two\nlines",
    "",
    "naïve",
    "plain",
    "  spaces ",
    "a\tb".replace("\t", " "),
]


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def csv_text() -> str:
    return "text,n\n\n" + "".join(f"{quoted(text)},{n}\n" for n, text in enumerate(TEXTS))


FILES: dict[str, Callable[[], bytes]] = {
    "rows.csv": lambda: csv_text().encode(),
    "rows.csv.gz": lambda: gzip.compress(csv_text().encode()),
    "rows.tsv": lambda: b"text\tn\n" + b"".join(b"x%d\t%d\n\n" % (n, n) for n in range(7)),
    "cells.tsv": lambda: b"text\n" + b"".join(b"x%d\n\n" % n for n in range(5)),
    "rows.jsonl": lambda: "\n\n".join(json.dumps({"text": t}) for t in TEXTS).encode(),
    "lines.txt": lambda: "\ufeff".encode() + b"a dog\r\n\nthe man\nlast",
}


def whole(path: Path) -> list[Record]:
    scan = RowFile(path, ["text"]).scan(10**6)
    return list(RowFile(path, ["text"]).read(scan.starts[0], scan.rows, scan.head_lines))


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
@pytest.mark.parametrize("name", FILES)
def test_slices_are_the_file(tmp_path: Path, name: str, rows: int) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name]())
    file = RowFile(path, ["text"])
    scan = file.scan(rows)
    slices = [
        list(file.read(start, min(rows, scan.rows - start.row), scan.head_lines))
        for start in scan.starts
    ]
    assert [len(part) for part in slices[:-1]] == [rows] * (len(slices) - 1)
    assert list(chain.from_iterable(slices)) == whole(path)


def test_the_rows_of_a_csv_file_are_those_that_were_written(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(FILES["rows.csv"]())
    texts = [record.values["text"] for record in whole(path)]  # type: ignore[index]
    assert texts == TEXTS
    scan = RowFile(path, ["text"]).scan(3)
    data = path.read_bytes()
    for start in scan.starts:  # the offset is that of the line, counted by hand
        assert data[: start.offset].count(b"\n") == start.line - 1
        assert data[start.offset :].decode().startswith(quoted(TEXTS[start.row]))


def test_rows_of_parquet_are_found_without_reading_what_is_before_them(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    table = arrow.table({"text": [f"x{n}" for n in range(95)], "n": range(95)})
    parquet.write_table(table, path, row_group_size=10)
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


def test_a_bad_row_has_its_line_in_any_slice(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b'text,n\n"a\nb",1\nc\nd,3\ncaf\xe9,4\n')
    file = RowFile(path, ["text"])
    scan = file.scan(1)
    rows = [next(file.read(start, 1, scan.head_lines)) for start in scan.starts]
    assert [row.line for row in rows] == [2, 4, 5, 6]
    assert [isinstance(row.values, BadRow) for row in rows] == [False, True, False, True]


def test_a_missing_column_is_told_with_those_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,n\na,1\n")
    with pytest.raises(DataError, match=r"unknown column 'txt'.*Did you mean 'text'"):
        RowFile(path, ["txt"]).scan(5)
    path.write_text("text,text\na,1\n")
    with pytest.raises(DataError, match="2 columns named 'text'"):
        RowFile(path, ["text"]).scan(5)


def test_what_cannot_be_gone_to_is_read_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes("text,n\na,1\nb,2\nc,3\n".encode("utf-16"))
    file = RowFile(path, ["text"], "utf-16")
    scan = file.scan(2)
    assert [start.offset for start in scan.starts] == [NO_OFFSET] * 2
    assert [row.values for row in file.read(scan.starts[1], 1, scan.head_lines)] == [
        {"text": "c", "n": "3"}
    ]


def test_an_empty_file_has_no_slices(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    assert RowFile(tmp_path / "a.txt", ["text"]).scan(5).starts == []
