"""TSV, CSV and JSON Lines: quoting, line ends, and how far a bad row reaches."""

from __future__ import annotations

import json

import pytest

from genpool.data import TableReader, table_files
from genpool.errors import ConfigError, DataError

ROWS = [("yes", "one"), ("no", "two")]
LONG = "word " * 50_000


def write(path, text, encoding="utf-8"):
    path.write_text(text, encoding=encoding, newline="")
    return path


def read(path, **options):
    return list(TableReader(path, **options).read("all"))


def pairs(examples):
    return [(example.label, example.first) for example in examples]


def delimited(delimiter):
    rows = [("label", "text"), ("yes", '"one, two; three | four"'), ("no", "five")]
    return "".join(delimiter.join(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("name", "text", "options", "expected"),
    [
        # In TSV a quote is a character, unless quotes are asked for.
        ("t.tsv", 'yes\t"one\nno\ttwo" and "three"\n', {}, ['"one', 'two" and "three"']),
        ("t.tsv", 'yes\t"one\ttwo\nthree"\n', {"quotes": True}, ["one\ttwo\nthree"]),
        # In CSV a quoted field has commas, doubled quotes and lines.
        (
            "t.csv",
            'yes,"one, ""two""\r\n\r\nthree"\r\nno,four\r\n',
            {},
            ['one, "two"\n\nthree', "four"],
        ),
        # Longer than the usual limit of Python.
        ("t.csv", f"yes,{LONG}\nno,two\n", {}, [LONG, "two"]),
        ("t.csv", f'yes,"{LONG}"\nno,two\n', {}, [LONG, "two"]),
        # A delimiter inside quotes is no delimiter of the header; a named one is not looked for.
        ("t.csv", 'label;"a, b, c";text\nyes;1;one\n', {}, ["one"]),
        (
            "t.csv",
            "label,text;note,x\nyes,one;two,3\n",
            {"first": "text;note", "delimiter": ","},
            ["one;two"],
        ),
        *(
            ("t.csv", delimited(delimiter), {}, ["one, two; three | four", "five"])
            for delimiter in (",", ";", "\t", "|")
        ),
    ],
)
def test_the_rows_are_those_that_were_written(tmp_path, name, text, options, expected):
    if not text.startswith("label"):
        text = f"label{chr(9) if name == 't.tsv' else ','}text\n{text}"
    examples = read(write(tmp_path / name, text), **options)
    assert pairs(examples) == list(zip(("yes", "no"), expected, strict=False))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # Lines are counted through quoted line ends, and a quote is located where it opens.
        ('yes,"a\nb\nc"\n\nno,d,e\n', "line 6: has 3 fields; expected 2"),
        ('yes,one\nno,"two\nyes,three\n', "line 3: quotes do not match"),
        ('yes,one\nno,"' + "two\n" * 100, "line 3: a field has more than 100 characters; is a q"),
    ],
)
def test_a_bad_row_of_csv_has_its_line(tmp_path, monkeypatch, text, message):
    monkeypatch.setattr(table_files, "MAX_FIELD_CHARACTERS", 100)
    with pytest.raises(DataError, match=message):
        read(write(tmp_path / "t.csv", f"label,text\n{text}"))


def test_reading_goes_on_after_a_row_of_bad_quoting(tmp_path):
    path = write(tmp_path / "t.csv", 'label,text\nyes,"one" two\nno,three\n')
    reader = TableReader(path, bad_rows="skip")
    assert pairs(reader.read("all")) == [("no", "three")]
    assert reader.skipped == {"bad quoting": 1}
    with pytest.raises(ConfigError, match="expected one character"):
        TableReader(path, delimiter=";;")


@pytest.mark.parametrize("suffix", ["tsv", "csv"])
def test_mark_windows_ends_and_blank_last_lines_change_nothing(tmp_path, suffix):
    between = "\t" if suffix == "tsv" else ","
    text = "".join(f"{a}{between}{b}\r\n" for a, b in [("label", "text"), *ROWS]) + "\r\n\r\n"
    path = write(tmp_path / f"t.{suffix}", text, encoding="utf-8-sig")
    assert pairs(read(path)) == ROWS
    with pytest.raises(DataError, match="is empty; expected a header line"):
        read(write(path, "\n"))


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
    first, second = read(write(tmp_path / "t.jsonl", "\n".join(lines)), labelled=False)
    assert (first.label, first.id) == (None, None)
    assert (second.label, second.id) == ("yes", "7")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"text": "no label"}', "missing field"),
        ('{"label": "yes"}', "missing field"),
        ('{"label": "yes", "text": null}', "empty side"),
        ('{"label": "yes", "text": ["a"]}', "not text"),
        ('{"label": null, "text": "a"}', "no label"),
        # An integer that no float can hold.
        ('{"label": "yes", "text": "a", "score": 1' + "0" * 400 + "}", "bad score"),
        ('"text"', "invalid JSON"),
        ('{"label": ' + "[" * 100_000, "invalid JSON"),
        ('{"label": ' + "1" * 5_000 + "}", "invalid JSON"),
    ],
)
def test_bad_json_rows_are_counted_by_reason(tmp_path, line, reason):
    good = '{"label": "yes", "text": "one"' + (', "score": 1}' if "score" in reason else "}")
    path = write(tmp_path / "t.jsonl", f"{line}\n{good}\n{line}\n{good}")
    reader = TableReader(path, bad_rows="skip")
    assert pairs(reader.read("all")) == [("yes", "one")] * 2
    assert reader.skipped == {reason: 2}
    with pytest.raises(DataError, match="line 1: "):
        read(path)
    if reason == "invalid JSON":  # the columns are known even if the first lines are damaged
        reader = TableReader(write(path, "{\n" * 150 + good), bad_rows="skip")
        assert pairs(reader.read("all")) == [("yes", "one")]


@pytest.mark.parametrize("suffix", ["tsv", "csv"])
def test_an_empty_line_in_a_table_of_one_column_is_an_empty_cell(tmp_path, suffix):
    path = write(tmp_path / f"t.{suffix}", "text\none\n\n\ntwo\n\n")
    texts = [example.first for example in read(path, labelled=False, empty_texts=True)]
    assert texts == ["one", "", "", "two"]
    with pytest.raises(DataError, match="line 3: column 'text' is empty"):
        read(path, labelled=False)
