"""Processes of bulk encoding, killed with SIGKILL in the middle of their work.

A worker is killed while it writes a shard: the name of the temporary file says which process that
is. The driver is killed at random moments. In the end every row must be there once, in the same
bytes as in an undisturbed run. `python -m benchmarks.faults.bulk_encoding` runs the long forms.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from genpool.disk.atomic import is_running
from genpool.integrations.bulk.shard import read_metadata
from tests.helpers.bulk_runs import problems, read_ids, shard_bytes, write_texts

#: longest wait for processes that should end; else they never would
END_SECONDS = 300
#: kills of workers over one shard: more than 4 are taken for the fault of the shard
KILLS_PER_SHARD = 3
#: shards that a driver finishes at most before the moment of its kill
MAX_SHARDS = 6
TEMPORARY = re.compile(r"\.(part-\d+-\d+\.parquet)\.[0-9a-f]+-(\d+)-[0-9a-f]+\.tmp")


@dataclass
class Faults:
    """What was done to a run, and what was wrong afterwards."""

    kills: int = 0
    runs: int = 0
    problems: list[str] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Job:
    """A command that encodes a folder of text files, and what it should give."""

    place: Path
    model: Path | None
    rows: int
    files: int
    shard_rows: int
    ids: list[str]
    expected: dict[str, bytes]

    @classmethod
    def prepare(
        cls, place: Path, model: Path | None, files: int, rows: int, shard_rows: int
    ) -> Job:
        """Writes the inputs and encodes them undisturbed."""
        ids = write_texts(place / "in", files, rows)
        job = cls(place, model, rows, files, shard_rows, ids, {})
        subprocess.run(job.command("calm"), check=True, capture_output=True, env=environment())
        return cls(place, model, rows, files, shard_rows, ids, shard_bytes(place / "calm"))

    def command(self, out: str, *options: str) -> list[str]:
        """The command line that encodes into a folder of this place."""
        inputs = [*([str(self.model)] if self.model else []), str(self.place / "in")]
        return [
            *(sys.executable, "-m", "genpool", "encode", *inputs, "-o", str(self.place / out)),
            *("--shard-rows", str(self.shard_rows)),
            *(options or ("--engine", "local")),
        ]


def environment() -> dict[str, str]:
    """One thread per process."""
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def kill_workers(job: Job, kills: int, out: str, *options: str, seed: int = 0) -> Faults:
    """Kills workers in the middle of shards; the command has to finish all the same.

    Args:
        job: what to encode.
        kills: how many workers.
        out: the name of the output folder.
        *options: of the command: the engine and its workers.
        seed: decides which and when.
    """
    faults, choose, folder = Faults(runs=1), random.Random(seed), job.place / out
    per_shard: Counter[str] = Counter()
    process = subprocess.Popen(
        job.command(out, *options),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
    )
    while process.poll() is None and faults.kills < kills:
        writers = [
            (shard, worker)
            for shard, worker in _writers(folder)
            if worker != process.pid and per_shard[shard] < KILLS_PER_SHARD
        ]
        if not writers:
            time.sleep(0.002)
            continue
        shard, worker = choose.choice(writers)
        time.sleep(choose.uniform(0, 0.05))
        if (shard, worker) not in _writers(folder):  # finished in the meantime
            continue
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
            faults.kills += 1
            per_shard[shard] += 1
            _wait_for_end(worker)
    said, _ = process.communicate(timeout=END_SECONDS)
    if process.returncode != 0:
        faults.problems.append(f"exit code {process.returncode}: {said[-500:]}")
    faults.problems += problems(folder, job.ids, job.expected)
    faults.notes["shards hit"] = len(per_shard)
    return faults


def kill_driver(
    job: Job, kills: int, out: str, seconds: float, *options: str, seed: int = 0
) -> Faults:
    """Kills the driver at random moments and starts it again, then lets it finish.

    Args:
        job: what to encode; a folder that is finished before the last kill is begun anew.
        kills: how many times.
        out: the first part of the names of the output folders.
        seconds: the latest moment of a kill, after the run has finished a random number of shards
            (three of four kills) or after its start.
        *options: of the command: the engine and its workers.
        seed: decides the moments.
    """
    faults, choose, number = Faults(), random.Random(seed), 0
    while faults.kills < kills:
        folder = job.place / f"{out}-{number}"
        faults.runs += 1
        left = set(_writers(folder))  # by the run that was killed before
        before = _finished(folder)
        process = subprocess.Popen(
            job.command(folder.name, *options),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )
        if choose.random() < 0.75:
            # By its progress and not by the clock: a busy machine would only see the first moments.
            _wait_for_shards(process, folder, before + choose.randint(0, MAX_SHARDS), left)
        with suppress(subprocess.TimeoutExpired):
            process.wait(choose.uniform(0, seconds))
        if process.poll() is None:
            process.kill()
            process.wait()
            faults.kills += 1
            faults.notes[_moment(folder, before, len(job.expected))] += 1
            faults.problems += _half_written(folder)
        else:
            faults.problems += problems(folder, job.ids, job.expected)
            number += 1
    folder = job.place / f"{out}-{number}"
    faults.runs += 1
    subprocess.run(
        job.command(folder.name, *options), check=True, capture_output=True, env=environment()
    )
    faults.problems += problems(folder, job.ids, job.expected)
    return faults


def _wait_for_shards(
    process: subprocess.Popen[bytes], folder: Path, shards: int, left: set[tuple[str, int]]
) -> None:
    """Waits until so many shards are finished and the run writes another one."""
    while process.poll() is None and (
        _finished(folder) < shards or not set(_writers(folder)) - left
    ):
        time.sleep(0.01)


def _finished(folder: Path) -> int:
    return len(list(folder.glob("part-*.parquet")))


def _moment(folder: Path, before: int, shards: int) -> str:
    if not folder.is_dir():
        return "before the folder was there"
    finished = _finished(folder)
    if finished == shards:
        return "after the last shard"
    return "before its first shard" if finished == before else "between its shards"


def _half_written(folder: Path) -> list[str]:
    """What must not be there after a kill: shards that cannot be read, or rows twice."""
    if not folder.is_dir():
        return []
    found = [
        f"{path.name} is not complete"
        for path in folder.glob("part-*.parquet")
        if read_metadata(path).get("name") != path.name
    ]
    ids = read_ids(folder)
    return [*found, *(["rows are doubled"] if len(set(ids)) < len(ids) else [])]


def _writers(folder: Path) -> list[tuple[str, int]]:
    """The shards that are being written, and the processes that write them."""
    with suppress(FileNotFoundError):
        matches = (TEMPORARY.fullmatch(path.name) for path in folder.iterdir())
        return sorted((match[1], int(match[2])) for match in matches if match)
    return []


def _wait_for_end(process: int) -> None:
    last = time.monotonic() + END_SECONDS
    while is_running(process) and not _is_zombie(process) and time.monotonic() < last:
        time.sleep(0.002)


def _is_zombie(process: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rsplit(")")[-1].split()[0] == "Z"
    return True
