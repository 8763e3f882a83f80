"""Excel sheets as tables."""

from __future__ import annotations

import datetime
import sys

import pytest

from genpool.data import Example, TableReader
from genpool.errors import DataError, MissingExtraError

openpyxl = pytest.importorskip("openpyxl")


def save(path, rows, other_sheet=None):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    if other_sheet is not None:
        sheet = book.create_sheet("second")
        for row in other_sheet:
            sheet.append(row)
    book.save(path)
    return path


def read(path, **options):
    return list(TableReader(path, **options).read("all"))


def test_the_first_sheet_is_a_table_with_a_header(tmp_path):
    rows = [("label", "text", "score"), ("gut", "Ein schöner Film\n(neu)", 2.5), (5, 2020, 1)]
    path = save(tmp_path / "t.xlsx", rows)
    assert read(path) == [
        Example("gut", "Ein schöner Film\n(neu)", score=2.5),
        Example("5", "2020", score=1.0),
    ]


def test_another_sheet_is_named(tmp_path):
    path = save(tmp_path / "t.xlsx", [("label", "text")], [("label", "text"), ("yes", "one")])
    assert read(path) == []
    assert read(path, sheet="second") == [Example("yes", "one")]
    with pytest.raises(DataError, match=r"unknown sheet 'secund'. Did you mean 'second'?"):
        read(path, sheet="secund")


def test_rows_above_the_header_and_below_the_data_may_be_empty(tmp_path):
    rows = [(None, None), ("label", "text"), ("yes", "one"), (None, None), ("no", "two")]
    path = save(tmp_path / "t.xlsx", [*rows, (None, None), (None, None)])
    examples = read(path, labelled=False, empty_texts=True)
    assert [(example.label, example.first) for example in examples] == [
        ("yes", "one"),
        (None, ""),
        ("no", "two"),
    ]
    with pytest.raises(DataError, match="line 4: column 'label' is empty"):
        read(path)


def test_cells_at_the_end_of_a_row_may_never_have_been_filled(tmp_path):
    path = save(tmp_path / "t.xlsx", [("text", "label", "id"), ("one", "yes", 7), ("two",)])
    assert read(path, labelled=False) == [Example("yes", "one", id="7"), Example(None, "two")]


def test_a_cell_that_is_not_text_is_a_bad_row(tmp_path):
    path = save(tmp_path / "t.xlsx", [("label", "text"), ("yes", datetime.datetime(2020, 1, 2))])
    with pytest.raises(DataError, match="line 2: column 'text' holds a datetime; expected text"):
        read(path)


def test_a_missing_column_is_told(tmp_path):
    path = save(tmp_path / "t.xlsx", [("label", None, "text"), ("yes", "x", "one")])
    with pytest.raises(DataError, match=r"line 1: unknown column 'body'.* Known: label, text"):
        read(path, first="body")


def test_an_empty_sheet_is_told(tmp_path):
    with pytest.raises(DataError, match="is empty; expected a first row with the names"):
        read(save(tmp_path / "t.xlsx", []))


def test_a_file_that_is_no_excel_file_is_told(tmp_path):
    path = tmp_path / "t.xlsx"
    path.write_text("label,text\n")
    with pytest.raises(DataError, match=r"is not an Excel file that can be read.*as \.csv"):
        read(path)


def test_without_the_extra_the_error_has_the_pip_line_and_the_other_way(tmp_path, monkeypatch):
    path = save(tmp_path / "t.xlsx", [("label", "text"), ("yes", "one")])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"save it as .*\.csv.*'genpool\[excel\]'"):
        read(path)


@pytest.mark.parametrize("name", ["t.xls", "t.ods"])
def test_spreadsheets_of_other_kinds_say_how_to_save_them(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match=r"spreadsheet of a kind that is not read.*\.xlsx or as"):
        TableReader(tmp_path / name)


def test_a_folder_of_sheets_has_a_split_for_each(tmp_path):
    for name in ("train.xlsx", "val.xlsx"):
        save(tmp_path / name, [("label", "text"), ("yes", name)])
    (tmp_path / "~$train.xlsx").write_bytes(b"the lock of an open file")
    reader = TableReader(tmp_path)
    assert reader.splits() == ["train", "dev"]
    assert [example.first for example in reader.read("dev")] == ["val.xlsx"]
