"""Opening data files: compression, byte order marks, line ends, and bytes that are not UTF-8."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
from pathlib import Path

import pytest

from genpool.data import TableReader
from genpool.data.rows import BadRow
from genpool.data.sentences import read_sentences
from genpool.data.text_files import UTF8_TEXT
from genpool.disk.files import raw_lines
from genpool.errors import DataError

TABLE = b"label\ttext\nyes\tone\nno\ttwo\n"


def texts(path: Path) -> list[str]:
    return [UTF8_TEXT.decode(line) for line in raw_lines(path)]


def write_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)],
)
def test_every_compression_gives_the_same_lines(tmp_path, suffix, compress):
    path = tmp_path / f"train.tsv{suffix}"
    path.write_bytes(compress(TABLE))
    assert texts(path) == ["label\ttext", "yes\tone", "no\ttwo"]


def test_a_zip_gives_its_only_file_and_macos_leftovers_are_not_counted(tmp_path):
    members = {"a/train.tsv": TABLE, "__MACOSX/a/._train.tsv": b"x", "a/.DS_Store": b"y"}
    path = write_zip(tmp_path / "train.tsv.zip", members)
    assert texts(path) == ["label\ttext", "yes\tone", "no\ttwo"]


def test_a_zip_of_several_files_is_refused_with_the_remedy(tmp_path):
    path = write_zip(tmp_path / "train.tsv.zip", {"a.tsv": TABLE, "b.tsv": TABLE})
    with pytest.raises(DataError, match=r"contains 2 files; expected one: unpack it first"):
        texts(path)


def test_byte_order_mark_and_windows_line_ends_are_not_part_of_the_text(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_bytes(b"\xef\xbb\xbf" + TABLE.replace(b"\n", b"\r\n"))
    assert texts(path) == ["label\ttext", "yes\tone", "no\ttwo"]


def test_a_byte_order_mark_further_down_is_kept(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_bytes(b"a\n\xef\xbb\xbfb\n")
    assert texts(path) == ["a", "\ufeffb"]


def test_only_a_line_feed_ends_a_line(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("a\u2028b\x0cc\x85d\ne", encoding="utf-8", newline="")
    assert texts(path) == ["a\u2028b\x0cc\x85d", "e"]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_bad_utf8_is_located_by_line_and_by_offset_in_the_file(tmp_path, mark):
    content = mark + b"label\ttext\nyes\tcaf\xe9\n"
    path = tmp_path / "train.tsv"
    path.write_bytes(content)
    line = list(raw_lines(path))[1]
    with pytest.raises(BadRow, match="byte 0xe9") as caught:
        UTF8_TEXT.decode(line)
    assert f"offset {content.index(0xE9)} of the file, byte 8 of the line" in caught.value.problem
    with pytest.raises(DataError, match="line 2: is not UTF-8") as error:
        list(TableReader(path).read("all"))
    assert (error.value.path, error.value.line) == (path, 2)


def test_utf16_is_recognised(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_bytes(TABLE.decode().encode("utf-16"))
    with pytest.raises(DataError, match="UTF-16 text; save it as UTF-8"):
        texts(path)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("text", [TABLE.decode(), "ab\n", "Stra\u00dfe \u4e2d\n"])
def test_utf16_without_a_byte_order_mark_is_recognised(tmp_path, encoding, text):
    path = tmp_path / "train.tsv"
    path.write_bytes((text * 2).encode(encoding))
    with pytest.raises(DataError, match="UTF-16 text; save it as UTF-8"):
        texts(path)
    with pytest.raises(DataError, match="UTF-16 text; save it as UTF-8"):
        list(read_sentences(path))


@pytest.mark.parametrize("text", ["a\x00 word\n", "\x00\n", "nul \x00 and \x00 again\n"])
def test_utf8_with_some_nul_characters_is_text(tmp_path, text):
    path = tmp_path / "train.txt"
    path.write_bytes(text.encode())
    assert texts(path) == [text.rstrip("\n")]


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress])
def test_a_compressed_file_that_is_cut_off_is_a_data_error(tmp_path, compress):
    suffix = {gzip.compress: ".gz", lzma.compress: ".xz", bz2.compress: ".bz2"}[compress]
    path = tmp_path / f"train.tsv{suffix}"
    path.write_bytes(compress(TABLE * 1000)[:-12])
    with pytest.raises(DataError, match="damaged or truncated"):
        texts(path)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2", ".zip"])
def test_a_plain_file_under_a_compressed_name_is_a_data_error(tmp_path, suffix):
    path = tmp_path / f"train.tsv{suffix}"
    path.write_bytes(TABLE)
    with pytest.raises(DataError, match="cannot be read"):
        texts(path)
