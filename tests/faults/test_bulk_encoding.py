"""Short forms of `python -m benchmarks.faults.bulk_encoding`, on a tiny model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.faults.bulk_damage import corrupt_one, limit_file_size
from benchmarks.faults.bulk_kills import Job, environment, kill_driver, kill_workers
from genpool import SentenceEncoder
from tests.helpers.bulk_runs import problems, shard_bytes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and SIGKILL")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory, make_encoder) -> Job:
    place = tmp_path_factory.mktemp("bulk")
    make_encoder().save_pretrained(place / "model")
    return Job.prepare(place, place / "model", files=4, rows=4000, shard_rows=1000)


def test_a_killed_worker_loses_no_row_and_doubles_none(job: Job) -> None:
    faults = kill_workers(job, 2, "workers", "--engine", "local", "--workers", "2")
    assert faults.kills == 2
    assert faults.problems == []


def test_a_killed_driver_is_continued_by_the_next_run(job: Job) -> None:
    faults = kill_driver(job, 3, "driver", 1.0, "--engine", "local")
    assert faults.kills == 3
    assert faults.problems == []


def test_a_full_disk_is_told_and_what_was_finished_stays(job: Job) -> None:
    out = job.place / "full"
    largest = max(map(len, job.expected.values()))
    command = job.command("full")
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment(),
        preexec_fn=lambda: limit_file_size(largest - 100),
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "cannot be written" in done.stderr and "File too large" in done.stderr
    finished = shard_bytes(out)
    assert finished.items() <= job.expected.items()
    assert not list(out.glob(".part*"))
    subprocess.run(command, check=True, capture_output=True, env=environment())
    assert problems(out, job.ids, job.expected) == []


@pytest.mark.parametrize(
    ("number", "damage"),
    [
        (40, "truncated"),
        (42, "truncated"),
        (43, "one bit flipped"),
        (40, "overwritten"),
        (41, "empty"),
    ],
)
def test_one_damaged_file_of_a_hundred_is_named_or_left_out(
    sentence_encoder: SentenceEncoder, tmp_path: Path, number: int, damage: str
) -> None:
    faults = corrupt_one(tmp_path, sentence_encoder, number, damage)
    assert faults.problems == []
    assert faults.notes["not noticed"] == 0
