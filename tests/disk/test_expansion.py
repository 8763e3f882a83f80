"""Compressed files that expand beyond all proportion are refused before they fill the memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from genpool.data import TableReader
from genpool.disk import expansion, files
from genpool.disk.files import open_bytes, raw_lines
from genpool.errors import ConfigError, DataError

MEGABYTE = 2**20
ZEROS = bytes(3 * MEGABYTE)


def write_zip(path: Path, data: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.txt", data)


WRITERS: dict[str, Callable[[Path, bytes], object]] = {
    ".gz": lambda path, data: path.write_bytes(gzip.compress(data)),
    ".xz": lambda path, data: path.write_bytes(lzma.compress(data)),
    ".bz2": lambda path, data: path.write_bytes(bz2.compress(data)),
    ".zip": write_zip,
}


@pytest.fixture(params=WRITERS)
def bomb(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A few kilobytes that expand to three megabytes, where one is free."""
    monkeypatch.setattr(expansion, "FREE_BYTES", MEGABYTE)
    path = tmp_path / f"bomb.txt{request.param}"
    WRITERS[request.param](path, ZEROS)
    assert path.stat().st_size * expansion.MAX_EXPANSION < len(ZEROS)
    return path


def test_a_bomb_is_refused_with_the_ways_to_read_it(bomb: Path) -> None:
    with pytest.raises(DataError, match=r"expands to more than 1,048,576 bytes") as caught:
        list(raw_lines(bomb))
    assert caught.value.path == bomb
    assert "decompress it first" in caught.value.problem
    assert "GENPOOL_MAX_EXPANSION" in caught.value.problem


def test_little_more_than_what_is_allowed_is_ever_decompressed(
    bomb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    usual = expansion._Counted.readinto

    def counted(stream: expansion._Counted, buffer: memoryview) -> int:
        count = usual(stream, buffer)
        counts.append(count)
        return count

    monkeypatch.setattr(expansion._Counted, "readinto", counted)
    with pytest.raises(DataError), open_bytes(bomb) as stream:
        stream.read()
    assert MEGABYTE - expansion.BUFFER_BYTES <= sum(counts) <= MEGABYTE


@pytest.mark.parametrize("factor", ["0", "1000000"])
def test_the_limit_can_be_lifted(bomb: Path, monkeypatch: pytest.MonkeyPatch, factor: str) -> None:
    monkeypatch.setenv("GENPOOL_MAX_EXPANSION", factor)
    with open_bytes(bomb) as stream:
        assert stream.read() == ZEROS


def test_a_file_that_expands_to_little_is_read_whatever_its_ratio(tmp_path: Path) -> None:
    path = tmp_path / "spaces.txt.xz"
    path.write_bytes(lzma.compress(ZEROS))
    with open_bytes(path) as stream:
        assert stream.read() == ZEROS


@pytest.mark.parametrize("factor", ["many", "-1", "1.5", ""])
def test_a_limit_that_is_no_number_is_refused(
    bomb: Path, monkeypatch: pytest.MonkeyPatch, factor: str
) -> None:
    monkeypatch.setenv("GENPOOL_MAX_EXPANSION", factor)
    with pytest.raises(ConfigError, match=r"GENPOOL_MAX_EXPANSION is .*; expected a whole number"):
        list(raw_lines(bomb))


def test_a_compressed_parquet_file_has_the_same_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "FREE_BYTES", MEGABYTE)
    path = tmp_path / "table.parquet.gz"
    path.write_bytes(gzip.compress(ZEROS))
    with pytest.raises(DataError, match="expands to more than"):
        next(TableReader(path).read("all"))


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_line_that_is_too_long_is_refused_with_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 100)
    path = tmp_path / f"lines.txt{suffix}"
    lines = b"a" * 99 + b"\n" + b"b" * 100
    path.write_bytes(gzip.compress(lines) if suffix else lines)
    assert [line.data for line in raw_lines(path)] == lines.splitlines()
    path.write_bytes(gzip.compress(lines + b"b") if suffix else lines + b"b")
    with pytest.raises(DataError, match="line 2: is longer than 100 bytes"):
        list(raw_lines(path))
