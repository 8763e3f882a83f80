"""`genpool encode --engine` as a person gives it."""

from __future__ import annotations

import pyarrow.parquet as parquet

from tests.helpers.bulk_runs import shard_bytes

MODEL = "runs/rules/best"


def test_files_become_shards_and_the_summary_says_what_happened(genpool, place):
    (place / "more.txt").write_text("A dog sleeps.\n")
    arguments = ("encode", MODEL, "sentences.txt", "more*", "-o", "shards/", "--engine", "local")
    said = genpool(*arguments, "--columns", "text", "--shard-rows", 2).ok()
    ids = ["more.txt:1", "sentences.txt:1", "sentences.txt:2", "sentences.txt:3"]
    table = parquet.read_table(place / "shards")
    assert table["id"].to_pylist() == ids
    assert table["text"].to_pylist()[:2] == ["A dog sleeps.", "A dog runs."]
    assert "4 rows (0 of them by earlier runs), 12 tokens, in 3 shards" in said.out
    assert "cut at the maximum length: 0 sentences by 0 tokens\nrows left out: 0" in said.out
    assert "input files that could not be read: 0" in said.out
    assert "encoding: 4/4" in said.err
    before = shard_bytes(place / "shards")
    again = genpool(*arguments, "--columns", "text", "--shard-rows", 2)
    assert "4 rows (4 of them by earlier runs), 12 tokens" in again.out
    assert shard_bytes(place / "shards") == before
    other = genpool(*arguments, "--columns", "text", "--shard-rows", 3)
    assert other.code == 2 and "shard_rows was 2, now 3" in other.err


def test_a_damaged_file_is_named_or_left_out(genpool, place):
    (place / "bad.txt.gz").write_bytes(b"\x1f\x8b\x08\x00 half a file")
    arguments = ("encode", MODEL, "sentences.txt", "bad.txt.gz", "--engine", "local")
    genpool(*arguments, "-o", "one").refused("bad.txt.gz: cannot be read", "--bad-files skip")
    table = ("encode", MODEL, "films.tsv", "-o", "three", "--engine", "local")
    genpool(*table).refused("films.tsv is a table; say which column")
    said = genpool(*arguments, "-o", "two", "--bad-files", "skip").ok()
    assert (
        "3 rows" in said.out and "input files that could not be read: 1\n  bad.txt.gz:" in said.out
    )


def test_a_large_file_says_before_it_starts_that_a_stopped_run_starts_over(
    genpool, place, monkeypatch
):
    monkeypatch.setattr("genpool.cli.encode.LARGE_FILE_BYTES", 1)
    said = genpool("encode", MODEL, "sentences.txt", "-o", "vectors.npy").ok()
    first = "a run that is stopped starts over; with --engine local it could be continued"
    assert said.err.splitlines()[0] == first
