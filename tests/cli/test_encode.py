"""`genpool encode` as a person gives it: shards, large files, and a run that is stopped."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest

from genpool import PairClassifier
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


def test_of_a_large_file_a_stopped_run_starts_over(genpool, place, monkeypatch):
    monkeypatch.setattr("genpool.cli.encode.LARGE_FILE_BYTES", 1)
    said = genpool("encode", MODEL, "sentences.txt", "-o", "vectors.npy").ok()
    first = "a run that is stopped starts over; with --engine local it could be continued"
    assert said.err.splitlines()[0] == first
    assert said.out == "3 vectors of 20 dimensions: vectors.npy\n"
    encoder = PairClassifier.from_pretrained(place / MODEL).encoder
    expected = encoder.encode(["A dog runs.", "", "An animal sleeps."])
    assert np.abs(np.load("vectors.npy") - expected).max() < 1e-6


#: longest wait for the command to start encoding
START_SECONDS = 120

# A shell may have started the tests with SIGINT ignored, which processes inherit.
COMMAND = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from genpool.cli import main; main()"
)


def has_written(folder: Path) -> bool:
    """Whether a temporary output has more than the header of its file."""
    with suppress(FileNotFoundError):  # removed in this moment
        files = [path for path in folder.rglob("*") if path.is_file()]
        return max((path.stat().st_size for path in files), default=0) > 4096
    return False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("output", "number", "workers"), [("v.npy", signal.SIGINT, 2), ("index/", signal.SIGTERM, 1)]
)
def test_a_stopped_run_says_how_far_it_was_and_leaves_nothing(
    sentence_encoder, tmp_path, output, number, workers
):
    sentence_encoder.save_pretrained(tmp_path / "model")
    (tmp_path / "many.txt").write_text("a dog runs .\n" * 500_000)
    folder, temporary = tmp_path / "out", tmp_path / "temporary"
    for path in (folder, temporary):
        path.mkdir()
    out = f"{folder}/{output}"
    files = [str(tmp_path / name) for name in ("model", "many.txt")]
    options = ["-o", out, "--batch-size", "4", "--workers", str(workers)]
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "encode", *files, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(temporary)},
    )
    last = time.monotonic() + START_SECONDS
    while not has_written(folder) and process.poll() is None and time.monotonic() < last:
        time.sleep(0.01)
    process.send_signal(number)
    said, complaint = process.communicate()
    assert process.returncode == 130, complaint
    assert said == "" and "Traceback" not in complaint
    message = re.escape("of 500,000 sentences; nothing was written to " + out)
    found = re.search(rf"stopped after ([\d,]+) {message}; run the command again", complaint)
    assert found and 0 < int(found[1].replace(",", "")) < 500_000, complaint
    assert list(folder.iterdir()) == []
    # Up to 2.9, importing PyTorch makes a temporary folder.
    left = [path for path in temporary.iterdir() if not any(path.glob("_remote_module*.py"))]
    assert left == []
