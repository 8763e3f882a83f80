"""The number of sentences of a file is the number that is read."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from genpool.data.sentences import READ_BYTES, column_reader, count_sentences, read_sentences
from genpool.errors import DataError


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"a",
        b"a\n",
        b"a\n\nb",
        b"a\r\nb\r\n",
        b"\xef\xbb\xbfa\nb\n",
        "a\u2028b\x0cc\n".encode(),
        b"a\n" * READ_BYTES,  # several reads
    ],
    ids=range(9),
)
def test_lines_are_counted_as_they_are_read(tmp_path: Path, data: bytes) -> None:
    plain, packed = tmp_path / "lines.txt", tmp_path / "lines.txt.gz"
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data))
    expected = len(list(read_sentences(plain)))
    assert count_sentences(plain) == count_sentences(str(packed)) == expected


def test_rows_of_tables_are_counted_as_they_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('text,n\n"two\nlines",1\n\n,2\n')
    (tmp_path / "a.tsv").write_text("text\tn\na\t1\n\nb\t2\nc\t3\n")
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n\n{"text": null}\n')
    parquet.write_table(arrow.table({"text": ["a", None, "b", "c"]}), tmp_path / "a.parquet")
    for name, expected in {"a.csv": 2, "a.tsv": 3, "a.jsonl": 2, "a.parquet": 4}.items():
        reader = column_reader(tmp_path / name, "text")
        assert count_sentences(reader) == len(list(read_sentences(reader))) == expected


def test_rows_that_are_skipped_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("text\tn\na\t1\nbroken\nc\t3\n")
    reader = column_reader(tmp_path / "a.tsv", "text", bad_rows="skip")
    assert count_sentences(reader) == 2
    list(read_sentences(reader))
    assert reader.skipped.total() == 1  # not twice, for the two passes
    with pytest.raises(DataError, match="line 3"):
        count_sentences(column_reader(tmp_path / "a.tsv", "text"))


def test_what_can_be_read_only_once_has_no_number(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert count_sentences("-") is None
    assert count_sentences(tmp_path / "pipe") is None


def test_a_damaged_parquet_file_is_reported_in_words(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(DataError, match="is not a Parquet file"):
        count_sentences(column_reader(tmp_path / "a.parquet", "text"))
