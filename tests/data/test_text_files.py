"""Text tables: quoting, line ends, bad rows, byte order marks, encodings named and guessed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from genpool.data import TableReader, table_files
from genpool.data.reader import BadRow
from genpool.data.sentences import read_sentences
from genpool.data.text_files import UTF8_TEXT, guess_encoding
from genpool.disk.files import raw_lines
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


TABLE = b"label\ttext\nyes\tone\nno\ttwo\n"


def texts(path: Path) -> list[str | BadRow]:
    return [UTF8_TEXT.decode(line) for line in raw_lines(path)]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_bad_utf8_is_located_by_line_and_by_offset_in_the_file(tmp_path, mark):
    content = mark + b"label\ttext\nyes\tcaf\xe9\n"
    path = tmp_path / "train.tsv"
    path.write_bytes(content)
    line = list(raw_lines(path))[1]
    bad = UTF8_TEXT.decode(line)
    assert isinstance(bad, BadRow)
    assert "byte 0xe9" in bad.problem
    assert f"offset {content.index(0xE9)} of the file, byte 8 of the line" in bad.problem
    with pytest.raises(DataError, match="line 2: is not UTF-8") as error:
        list(TableReader(path).read("all"))
    assert (error.value.path, error.value.line) == (path, 2)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32-le"])
@pytest.mark.parametrize("text", [TABLE.decode(), "ab\n", "Stra\u00dfe \u4e2d\n"])
def test_utf16_is_recognised_with_and_without_a_byte_order_mark(tmp_path, encoding, text):
    path = tmp_path / "train.tsv"
    path.write_bytes((text * 2).encode(encoding))
    for reads in (texts, lambda path: list(read_sentences(path))):
        with pytest.raises(DataError, match="UTF-16 text; save it as UTF-8"):
            reads(path)
    with pytest.raises(DataError, match=r"is UTF-16 text; save it .*--encoding utf-16"):
        read(path)


@pytest.mark.parametrize("text", ["a\x00 word\n", "\x00\n", "nul \x00 and \x00 again\n"])
def test_utf8_with_some_nul_characters_is_text(tmp_path, text):
    path = tmp_path / "train.txt"
    path.write_bytes(text.encode())
    assert texts(path) == [text.rstrip("\n")]


GERMAN = [("gut", "Ein schöner Film"), ("schlecht", "Größte Enttäuschung für 5 €")]
GERMAN_TABLE = "label,text\n" + "".join(f"{label},{text}\n" for label, text in GERMAN)


@pytest.mark.parametrize(
    ("suffix", "encoding"),
    [("csv", "cp1252"), ("tsv", "iso-8859-15"), ("jsonl", "cp1252"), ("csv", "utf-8-sig")],
)
def test_a_table_is_read_in_the_encoding_that_is_named(tmp_path, suffix, encoding):
    text = GERMAN_TABLE if suffix == "csv" else GERMAN_TABLE.replace(",", "\t")
    if suffix == "jsonl":
        lines = [{"label": label, "text": text} for label, text in GERMAN]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(text.encode(encoding))
    assert pairs(read(path, encoding=encoding)) == GERMAN


@pytest.mark.parametrize(
    ("encoding", "end"),
    [("utf-16", "\n"), ("utf-16-le", "\r\n"), ("utf-16-be", "\n"), ("utf-32", "\r\n")],
)
def test_lines_of_encodings_with_several_bytes_per_character_are_found(tmp_path, encoding, end):
    # U+0A0D holds the bytes of both line ends, and U+2028 ends a line in other programs.
    text = GERMAN_TABLE + "gut,\u0a0d a\u2028b\n"
    path = tmp_path / "t.csv"
    mark = ("\ufeff" if encoding[-2:] in ("le", "be") else "").encode(encoding)
    path.write_bytes(mark + text.replace("\n", end).encode(encoding))
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for file in (path, packed):
        assert pairs(read(file, encoding=encoding)) == [*GERMAN, ("gut", "\u0a0d a\u2028b")]


def test_lines_are_found_across_the_blocks_that_are_read(tmp_path):
    path = tmp_path / "t.csv"
    texts = [("gut", "\u00e4\U0001f600" * length) for length in range(1, 400)]
    table = "label,text\n" + "".join(f"{label},{text}\n" for label, text in texts)
    path.write_bytes(table.encode("utf-16"))
    assert pairs(read(path, encoding="utf-16")) == texts


def test_the_error_guesses_the_encoding_and_says_how_to_name_it(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("label;café\nyes;one\n".encode("cp1252"))
    with pytest.raises(DataError, match=r"line 1: is not UTF-8.*it may be cp1252"):
        read(path, first="café")
    assert pairs(read(path, first="café", encoding="cp1252")) == [("yes", "one")]
    path.write_bytes(GERMAN_TABLE.encode("cp1252"))
    for name in ("cp9999", "base64"):
        with pytest.raises(ConfigError, match=f"encoding is '{name}'.*such as utf-8.*cp1252"):
            TableReader(path, encoding=name)
    with pytest.raises(DataError) as caught:
        read(path)
    message = str(caught.value)
    assert "line 2: is not UTF-8: byte 0xf6 at offset 22 of the file" in message
    assert "it may be cp1252, in which this is 'schöner'" in message
    assert "save it as UTF-8, or name the encoding of a table: encoding='cp1252'" in message
    assert "(command line: --encoding cp1252)" in message


def test_rows_that_are_left_out_lead_to_the_encoding_too(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(GERMAN_TABLE.encode("cp1252") + b"gut,one\n")
    reader = TableReader(path, bad_rows="skip")
    assert [example.first for example in reader.read("all")] == ["one"]
    assert reader.skipped == {"bad UTF-8": 2}
    assert "line 2: is not UTF-8" in str(reader.first_skipped)
    assert "it may be cp1252" in str(reader.first_skipped)
    reader = TableReader(path, bad_rows="skip", encoding="cp1252")
    assert len(list(reader.read("all"))) == 3
    assert reader.first_skipped is None


def test_text_that_is_not_in_the_named_encoding_is_located(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"label,text\nyes,one\nno,caf\xe9\n")
    with pytest.raises(DataError, match=r"line 3: is not ascii: byte 0xe9.*name another encoding"):
        read(path, encoding="ascii")
    reader = TableReader(path, encoding="ascii", bad_rows="skip")
    assert (len(list(reader.read("all"))), reader.skipped) == (1, {"bad ascii": 1})
    path.write_bytes("label,text\nyes,one\n".encode("utf-16") + b"\x00\xd8\x20")
    with pytest.raises(DataError, match="line 3: is not utf-16"):
        read(path, encoding="utf-16")


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Le café était fermé, “hélas” à 5 €"),
        ("cp1252", '1;Lob;"Größe passt genau"'),
        ("cp1251", "positive;Очень хорошо"),
        ("cp1251", "Отличный фильм, всем советую посмотреть"),
        ("shift_jis", "この映画はとても面白かったです"),
        ("gb18030", "这部电影非常好看推荐给大家"),
    ],
)
def test_common_encodings_are_told_apart(encoding, text):
    assert guess_encoding(text.encode(encoding)) == encoding
