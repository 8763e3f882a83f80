"""Reading lines of plain and compressed files; Markdown tables."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genpool.disk import files
from genpool.disk.files import (
    COMPRESSED,
    RawLine,
    markdown_table,
    open_bytes,
    percent,
    percent_interval,
    raw_lines,
    uncompressed_name,
)
from genpool.errors import DataError

CONTENT = "first\nsecond: é\n\nlast".encode()
LINES = [
    RawLine(1, 0, b"first"),
    RawLine(2, 6, "second: é".encode()),
    RawLine(3, 17, b""),
    RawLine(4, 18, b"last"),
]


def write(folder: Path, name: str, content: bytes = CONTENT) -> Path:
    """A file, compressed as its name says."""
    path = folder / name
    suffix = path.suffix.lower()
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inside.txt", content)
    else:
        pack: dict[str, Callable[[bytes], bytes]] = {
            ".gz": gzip.compress,
            ".xz": lzma.compress,
            ".bz2": bz2.compress,
        }
        path.write_bytes(pack.get(suffix, bytes)(content))
    return path


@pytest.mark.parametrize(
    "name", ["a.txt", "a.txt.gz", "a.txt.xz", "a.txt.bz2", "a.txt.zip", "A.TXT.GZ", "plain"]
)
def test_lines_have_their_number_and_place(tmp_path: Path, name: str) -> None:
    assert list(raw_lines(write(tmp_path, name))) == LINES


@settings(max_examples=60, deadline=None, database=None)
@given(content=st.lists(st.sampled_from([b"a", b"\xc3\xa9", b"\n", b"\r\n", b"\x0c", b" "])))
def test_offsets_lead_to_the_lines(tmp_path_factory: pytest.TempPathFactory, content) -> None:
    data = b"".join(content)
    path = tmp_path_factory.getbasetemp() / "lines.txt"
    path.write_bytes(data)
    lines = list(raw_lines(path))
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    for line in lines:
        assert data[line.offset :].startswith(line.data)
        assert line.offset == 0 or data[line.offset - 1 : line.offset] == b"\n"
    assert b"".join(line.data for line in lines) == data.replace(b"\r\n", b"").replace(b"\n", b"")


def test_a_line_ends_at_a_line_feed_only(tmp_path: Path) -> None:
    text = "one\x0btwo\x0cthree\u2028four\x85five\rsix\r\nseven"
    lines = list(raw_lines(write(tmp_path, "odd.txt", text.encode())))
    assert [line.data.decode() for line in lines] == text.split("\r\n")


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    lines = list(raw_lines(write(tmp_path, "bom.txt", b"\xef\xbb\xbfone\ntwo")))
    assert lines == [RawLine(1, 3, b"one"), RawLine(2, 7, b"two")]
    elsewhere = list(raw_lines(write(tmp_path, "bom.txt", b"one\n\xef\xbb\xbftwo")))
    assert elsewhere[1].data == b"\xef\xbb\xbftwo"


def test_what_is_no_utf8_text_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "wide.txt"
    with pytest.raises(DataError, match=r"wide\.txt: there is no such file") as caught:
        list(raw_lines(path))
    assert caught.value.path == path
    with pytest.raises(DataError, match="cannot be read"):
        list(raw_lines(tmp_path))
    for codec in ("utf-16-le", "utf-16-be"):
        path.write_bytes("\ufeffone\n".encode(codec))
        with pytest.raises(DataError, match=r"wide\.txt: is UTF-16 text; save it as UTF-8"):
            list(raw_lines(path))


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_a_file_that_is_cut_off_or_of_another_kind_is_refused(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path, f"a{suffix}", b"")
    assert list(raw_lines(path)) == []
    path = write(tmp_path, f"a{suffix}", os.urandom(5000))
    for content in (path.read_bytes()[:-2000], CONTENT, b""):  # as downloads that failed
        path.write_bytes(content)
        with pytest.raises(DataError, match="damaged or truncated") as caught:
            list(raw_lines(path))
        assert str(path) in str(caught.value)


def test_an_archive_has_one_file_and_what_macos_adds(tmp_path: Path) -> None:
    path = tmp_path / "mac.zip"
    for members in (1, 2, 0):
        with zipfile.ZipFile(path, "w") as archive:
            archive.mkdir("data")
            for number in range(members):
                archive.writestr(f"data/{number}.txt", CONTENT)
            archive.writestr("__MACOSX/data/._a.txt", b"x")
            archive.writestr("data/.DS_Store", b"x")
        if members == 1:
            assert list(raw_lines(path)) == LINES
            continue
        with pytest.raises(DataError, match=rf"contains {members} files; expected one"):
            list(raw_lines(path))


def test_the_uncompressed_name_leaves_the_suffix_out() -> None:
    names = {"train.tsv.xz": "train.tsv", "a.GZ": "a", "a.tsv": "a.tsv", "a.b.zip": "a.b"}
    assert {name: uncompressed_name(Path("folder") / name) for name in names} == names


def test_a_zip_whose_names_are_damaged_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("é.txt", "text")
    content = path.read_bytes()
    for place in (content.index("é".encode()), content.rindex("é".encode())):
        damaged = content[:place] + b"\xff" + content[place + 1 :]
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="may be damaged"), open_bytes(path):
            pass
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x", "text")
    path.write_bytes(path.read_bytes().replace(b"x", b"\x00"))  # a name that ends where it begins
    with pytest.raises(DataError, match="contains 0 files; expected one"), open_bytes(path):
        pass


MEGABYTE = 2**20
ZEROS = bytes(3 * MEGABYTE)


@pytest.fixture(params=COMPRESSED)
def bomb(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A few kilobytes that expand to three megabytes, where one is free."""
    monkeypatch.setattr(files, "FREE_BYTES", MEGABYTE)
    path = write(tmp_path, f"bomb.txt{request.param}", ZEROS)
    assert path.stat().st_size * files.MAX_EXPANSION < len(ZEROS)
    return path


def test_a_bomb_is_refused_with_the_ways_to_read_it_after_what_is_allowed(
    bomb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    usual = files._LimitedStream.readinto

    def counted(stream: files._LimitedStream, buffer: memoryview) -> int:
        counts.append(usual(stream, buffer))
        return counts[-1]

    monkeypatch.setattr(files._LimitedStream, "readinto", counted)
    with pytest.raises(DataError, match=r"expands to more than 1,048,576 bytes") as caught:
        list(raw_lines(bomb))
    assert MEGABYTE - files.BUFFER_BYTES <= sum(counts) <= MEGABYTE
    assert caught.value.path == bomb
    assert "decompress it first" in caught.value.problem


def test_a_file_that_expands_to_little_is_read_whatever_its_ratio(tmp_path: Path) -> None:
    with open_bytes(write(tmp_path, "spaces.txt.xz", ZEROS)) as stream:
        assert stream.read() == ZEROS


def test_a_line_that_is_too_long_is_refused_with_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 100)
    lines = b"a" * 99 + b"\n" + b"b" * 100
    path = write(tmp_path, "lines.txt.gz", lines)
    assert [line.data for line in raw_lines(path)] == lines.splitlines()
    with pytest.raises(DataError, match="line 2: is longer than 100 bytes"):
        list(raw_lines(write(tmp_path, "lines.txt.gz", lines + b"b")))


def test_markdown_aligns_text_to_the_left_and_values_to_the_right() -> None:
    rows = [["yes", 12, 0.5], ["no | not\n  yet", 7, 0.25]]
    assert markdown_table(["label", "rows", "share"], rows).split("\n") == [
        "| label | rows | share |",
        "|---|---:|---:|",
        "| yes | 12 | 0.5 |",
        r"| no \| not yet | 7 | 0.25 |",
    ]
    assert markdown_table(["a", "b", "c"], [], text=2).split("\n")[1] == "|---|---|---:|"
    assert percent(0.82314) == "82.31 %"
    assert percent_interval((-0.0012, 0.8306)) == "-0.12 to 83.06 %"
