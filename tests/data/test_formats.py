"""TSV, CSV and JSON Lines: quoting, line ends, and how far a bad row reaches."""

from __future__ import annotations

import json

import pytest

from genpool.data import TableReader, text_files
from genpool.errors import ConfigError, DataError

ROWS = [("yes", "one"), ("no", "two")]


def write(path, text, encoding="utf-8"):
    path.write_text(text, encoding=encoding, newline="")
    return path


def read(path, split="all", **options):
    return list(TableReader(path, **options).read(split))


def pairs(examples):
    return [(example.label, example.first) for example in examples]


def test_in_tsv_a_quote_is_a_letter(tmp_path):
    path = write(tmp_path / "t.tsv", 'label\ttext\nyes\t"one\nno\ttwo" and "three"\n')
    assert pairs(read(path)) == [("yes", '"one'), ("no", 'two" and "three"')]


def test_tsv_with_quotes_is_read_on_request(tmp_path):
    path = write(tmp_path / "t.tsv", 'label\ttext\nyes\t"one\ttwo\nthree"\n')
    assert pairs(read(path, quotes=True)) == [("yes", "one\ttwo\nthree")]


def test_csv_fields_may_hold_commas_doubled_quotes_and_lines(tmp_path):
    path = write(tmp_path / "t.csv", 'label,text\r\nyes,"one, ""two""\r\n\r\nthree"\r\nno,four\r\n')
    assert pairs(read(path)) == [("yes", 'one, "two"\n\nthree'), ("no", "four")]


def test_lines_of_csv_are_counted_through_quoted_line_ends(tmp_path):
    path = write(tmp_path / "t.csv", 'label,text\nyes,"a\nb\nc"\n\nno,d,e\n')
    with pytest.raises(DataError, match=r"line 6: has 3 fields; expected 2") as caught:
        read(path)
    assert caught.value.line == 6


def test_a_quote_that_is_never_closed_is_located_where_it_opens(tmp_path):
    path = write(tmp_path / "t.csv", 'label,text\nyes,one\nno,"two\nyes,three\n')
    with pytest.raises(DataError, match="line 3: quotes do not match"):
        read(path)


def test_reading_goes_on_after_a_row_of_bad_quoting(tmp_path):
    path = write(tmp_path / "t.csv", 'label,text\nyes,"one" two\nno,three\n')
    reader = TableReader(path, bad_rows="skip")
    assert pairs(reader.read("all")) == [("no", "three")]
    assert reader.skipped == {"bad quoting": 1}


@pytest.mark.parametrize("quote", ["", '"'])
def test_csv_fields_longer_than_the_usual_limit_of_python_are_read(tmp_path, quote):
    long = "word " * 50_000
    path = write(tmp_path / "t.csv", f"label,text\nyes,{quote}{long}{quote}\nno,two\n")
    assert pairs(read(path)) == [("yes", long), ("no", "two")]


def test_a_field_without_end_is_told_as_such(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "MAX_FIELD_CHARACTERS", 100)
    path = write(tmp_path / "t.csv", 'label,text\nyes,one\nno,"' + "two\n" * 100)
    with pytest.raises(DataError, match="line 3: a field has more than 100 characters; is a quote"):
        read(path)


@pytest.mark.parametrize("suffix", ["tsv", "csv"])
def test_mark_windows_ends_and_blank_last_lines_change_nothing(tmp_path, suffix):
    between = "\t" if suffix == "tsv" else ","
    text = "".join(f"{a}{between}{b}\r\n" for a, b in [("label", "text"), *ROWS]) + "\r\n\r\n"
    path = write(tmp_path / f"t.{suffix}", text, encoding="utf-8-sig")
    assert pairs(read(path)) == ROWS


@pytest.mark.parametrize("suffix", ["tsv", "csv"])
def test_bad_utf8_in_the_middle_of_a_table_is_skipped_with_its_row_only(tmp_path, suffix):
    between = b"\t" if suffix == "tsv" else b","
    path = tmp_path / f"t.{suffix}"
    rows = [b"label|text", b"yes|one", b"no|caf\xe9", b"no|two"]
    path.write_bytes(b"\n".join(rows).replace(b"|", between))
    reader = TableReader(path, bad_rows="skip")
    assert pairs(reader.read("all")) == ROWS
    assert reader.skipped == {"bad UTF-8": 1}
    with pytest.raises(DataError, match="line 3: is not UTF-8: byte 0xe9 at offset 25 of the file"):
        read(path)


@pytest.mark.parametrize("suffix", ["tsv", "csv"])
def test_an_empty_file_is_an_error(tmp_path, suffix):
    path = write(tmp_path / f"t.{suffix}", "\n")
    with pytest.raises(DataError, match="is empty; expected a header line"):
        read(path)


def test_json_values_that_are_numbers_are_read_as_text(tmp_path):
    rows = [
        {"label": 3, "text": "a\tb\n"},
        {"label": 3.0, "text": 2020},
        {"label": True, "text": "c"},
    ]
    path = write(tmp_path / "t.jsonl", "\n".join(map(json.dumps, rows)))
    with pytest.raises(DataError, match=r"line 1: unknown column 'n'.*Known: label, text"):
        read(path, first="n", bad_rows="skip")
    assert pairs(read(path)) == [("3", "a\tb\n"), ("3", "2020"), ("true", "c")]


def test_optional_fields_are_found_although_the_first_line_lacks_them(tmp_path):
    lines = ['{"text": "one"}', '{"label": "yes", "text": "two", "id": 7}']
    path = write(tmp_path / "t.jsonl", "\n".join(lines))
    first, second = read(path, labelled=False)
    assert (first.label, first.id) == (None, None)
    assert (second.label, second.id) == ("yes", "7")


def test_an_integer_that_no_float_can_hold_is_a_bad_score(tmp_path):
    huge = "1" + "0" * 400
    lines = [f'{{"score": {huge}, "text": "a"}}', '{"score": 2, "text": "b"}']
    path = write(tmp_path / "t.jsonl", "\n".join(lines))
    with pytest.raises(DataError, match=r"line 1: column 'score' holds 1000.*expected a finite"):
        read(path)
    reader = TableReader(path, bad_rows="skip")
    assert [example.score for example in reader.read("all")] == [2.0]
    assert reader.skipped == {"bad score": 1}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"text": "no label"}', "missing field"),
        ('{"label": "yes"}', "missing field"),
        ('{"label": "yes", "text": null}', "empty side"),
        ('{"label": "yes", "text": ["a"]}', "not text"),
        ('{"label": null, "text": "a"}', "no label"),
        ('"text"', "invalid JSON"),
        ('{"label": ' + "[" * 100_000, "invalid JSON"),
        ('{"label": ' + "1" * 5_000 + "}", "invalid JSON"),
    ],
)
def test_bad_json_rows_are_counted_by_reason(tmp_path, line, reason):
    good = '{"label": "yes", "text": "one"}'
    path = write(tmp_path / "t.jsonl", f"{line}\n{good}\n{line}\n{good}")
    reader = TableReader(path, bad_rows="skip")
    assert pairs(reader.read("all")) == [("yes", "one")] * 2
    assert reader.skipped == {reason: 2}
    with pytest.raises(DataError, match="line 1: "):
        read(path)
    if reason == "invalid JSON":  # the columns are known even if the first lines are damaged
        reader = TableReader(write(path, "{\n" * 150 + good), bad_rows="skip")
        assert pairs(reader.read("all")) == [("yes", "one")]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_of_a_csv_file_is_found_in_its_header(tmp_path, delimiter):
    rows = [("label", "text"), ("yes", '"one, two; three | four"'), ("no", "five")]
    path = write(tmp_path / "t.csv", "".join(delimiter.join(row) + "\n" for row in rows))
    assert pairs(read(path)) == [("yes", "one, two; three | four"), ("no", "five")]


def test_a_delimiter_inside_quotes_is_no_delimiter_of_the_header(tmp_path):
    path = write(tmp_path / "t.csv", 'label;"a, b, c";text\nyes;1;one\n')
    assert pairs(read(path)) == [("yes", "one")]


def test_a_named_delimiter_is_not_looked_for(tmp_path):
    path = write(tmp_path / "t.csv", "label,text;note,x\nyes,one;two,3\n")
    assert pairs(read(path, first="text;note", delimiter=",")) == [("yes", "one;two")]
    with pytest.raises(ConfigError, match="expected one character"):
        TableReader(path, delimiter=";;")


@pytest.mark.parametrize("suffix", ["tsv", "csv"])
def test_an_empty_line_in_a_table_of_one_column_is_an_empty_cell(tmp_path, suffix):
    path = write(tmp_path / f"t.{suffix}", "text\none\n\n\ntwo\n\n")
    texts = [example.first for example in read(path, labelled=False, empty_texts=True)]
    assert texts == ["one", "", "", "two"]
    with pytest.raises(DataError, match="line 3: column 'text' is empty"):
        read(path, labelled=False)
