"""What an output replaces is said with its rows and its date."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import pytest

from genpool import SentenceEncoder
from genpool.jobs.encode_file import EncodeOptions, describe_earlier_output, encode_file

WHEN = datetime(2021, 3, 4, 5, 6)


def change_date(path: Path) -> None:
    os.utime(path, (WHEN.timestamp(), WHEN.timestamp()))


@pytest.mark.parametrize("output", ["v.npy", "v.parquet", "v.jsonl", "index/", "index"])
def test_rows_and_date_of_an_earlier_output(
    sentence_encoder: SentenceEncoder, tmp_path: Path, output: str
) -> None:
    out = f"{tmp_path}/{output}"
    assert describe_earlier_output(out) is None
    (tmp_path / "lines.txt").write_text("a dog\n\nthe man\n")
    options = EncodeOptions(show_progress=False)
    encode_file(sentence_encoder, tmp_path / "lines.txt", out, options)
    change_date(Path(out))
    assert describe_earlier_output(out) == "3 rows, 2021-03-04 05:06"


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_a_file_that_cannot_be_read_is_described_all_the_same(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"v{suffix}"
    path.write_bytes(b"something else")
    change_date(path)
    assert describe_earlier_output(path) == "unknown rows, 2021-03-04 05:06"


def test_what_may_not_be_replaced_is_left_to_the_writer(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine.txt").write_text("mine")
    assert describe_earlier_output(tmp_path / "folder") is None
    (tmp_path / "folder.npy").mkdir()
    assert describe_earlier_output(tmp_path / "folder.npy") is None
    assert describe_earlier_output(tmp_path / "notes.txt") is None
