"""Data files as text: compression, byte order marks, line ends, encodings named and guessed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from genpool.data import TableReader
from genpool.data.reader import BadRow
from genpool.data.sentences import read_sentences
from genpool.data.text_files import UTF8_TEXT, guess_encoding
from genpool.disk.files import raw_lines
from genpool.errors import ConfigError, DataError

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
    for read in (texts, lambda path: list(read_sentences(path))):
        with pytest.raises(DataError, match="UTF-16 text; save it as UTF-8"):
            read(path)


@pytest.mark.parametrize("text", ["a\x00 word\n", "\x00\n", "nul \x00 and \x00 again\n"])
def test_utf8_with_some_nul_characters_is_text(tmp_path, text):
    path = tmp_path / "train.txt"
    path.write_bytes(text.encode())
    assert texts(path) == [text.rstrip("\n")]


GERMAN = [("gut", "Ein schöner Film"), ("schlecht", "Größte Enttäuschung für 5 €")]
GERMAN_TABLE = "label,text\n" + "".join(f"{label},{text}\n" for label, text in GERMAN)


def rows(path, **options):
    return [(example.label, example.first) for example in TableReader(path, **options).read("all")]


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
    assert rows(path, encoding=encoding) == GERMAN


@pytest.mark.parametrize(
    ("encoding", "end"),
    [("utf-16", "\n"), ("utf-16-le", "\r\n"), ("utf-16-be", "\n"), ("utf-32", "\r\n")],
)
def test_lines_of_encodings_with_several_bytes_per_character_are_found(tmp_path, encoding, end):
    # U+0A0D holds the bytes of both line ends, and U+2028 ends a line in other programs.
    text = GERMAN_TABLE + "gut,\u0a0d a\u2028b\n"
    path = tmp_path / "t.csv"
    path.write_bytes(("\ufeff" if encoding[-2:] in ("le", "be") else "").encode(encoding))
    with path.open("ab") as file:
        file.write(text.replace("\n", end).encode(encoding))
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for file in (path, packed):
        assert rows(file, encoding=encoding) == [*GERMAN, ("gut", "\u0a0d a\u2028b")]


def test_lines_are_found_across_the_blocks_that_are_read(tmp_path):
    path = tmp_path / "t.csv"
    texts = [("gut", "\u00e4\U0001f600" * length) for length in range(1, 400)]
    table = "label,text\n" + "".join(f"{label},{text}\n" for label, text in texts)
    path.write_bytes(table.encode("utf-16"))
    assert rows(path, encoding="utf-16") == texts


def test_an_encoding_that_python_does_not_know_is_told(tmp_path):
    (tmp_path / "t.csv").write_text(GERMAN_TABLE, encoding="utf-8")
    for name in ("cp9999", "base64"):
        with pytest.raises(ConfigError, match=f"encoding is '{name}'.*such as utf-8.*cp1252"):
            TableReader(tmp_path / "t.csv", encoding=name)


def test_the_error_guesses_the_encoding_and_says_how_to_name_it(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(GERMAN_TABLE.encode("cp1252"))
    with pytest.raises(DataError) as caught:
        rows(path)
    message = str(caught.value)
    assert "line 2: is not UTF-8: byte 0xf6 at offset 22 of the file" in message
    assert "it may be cp1252, in which this is 'schöner'" in message
    assert "save it as UTF-8, or name the encoding of a table: encoding='cp1252'" in message
    assert "(command line: --encoding cp1252)" in message


def test_the_header_may_be_what_is_not_utf8(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("label;café\nyes;one\n".encode("cp1252"))
    with pytest.raises(DataError, match=r"line 1: is not UTF-8.*it may be cp1252"):
        rows(path, first="café")
    assert rows(path, first="café", encoding="cp1252") == [("yes", "one")]


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
        rows(path, encoding="ascii")
    reader = TableReader(path, encoding="ascii", bad_rows="skip")
    assert (len(list(reader.read("all"))), reader.skipped) == (1, {"bad ascii": 1})
    path.write_bytes("label,text\nyes,one\n".encode("utf-16") + b"\x00\xd8\x20")
    with pytest.raises(DataError, match="line 3: is not utf-16"):
        rows(path, encoding="utf-16")


def test_a_utf16_table_says_how_to_name_it(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(GERMAN_TABLE.encode("utf-16"))
    with pytest.raises(DataError, match=r"is UTF-16 text; save it .*--encoding utf-16"):
        rows(path)


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
