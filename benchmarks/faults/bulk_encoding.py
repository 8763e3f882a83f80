"""All faults of bulk encoding, in their long form.

`python -m benchmarks.faults.bulk_encoding [--write] [NAME...]` runs them on the embedded model
(about half an hour) and prints a table; --write puts it into results/reliability.md.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.faults.bulk_damage import DAMAGES, FILES, corrupt_one, fill_disk
from benchmarks.faults.bulk_kills import Faults, Job, kill_driver, kill_workers
from benchmarks.faults.bulk_nodes import kill_nodes
from benchmarks.pages import markdown_table, one_line, page_path, versions_line, write_section
from genpool import SentenceEncoder

KILLS = 20
#: fewer, because Ray takes long to start
RAY_DRIVER_KILLS = 5
HEADING = "Bulk encoding"
COLUMNS = ["fault", "times", "must hold", "held", "notes"]
#: the latest moment at which the driver is killed, after its start or a random number of shards
DRIVER_SECONDS = 3.0
#: room of the small disk, for a few of the shards
DISK_MEGABYTES = 4
TINY_MODEL = Path(__file__).parent.parent / "golden" / "v1-encoder"


@dataclass(frozen=True)
class Fault:
    """A row of the table: what is done, what must hold, and the function that tries it."""

    title: str
    must_hold: str
    run: Callable[[Path, Job], Faults]


def local_workers(place: Path, job: Job) -> Faults:
    """Kills local workers."""
    return kill_workers(job, KILLS, "local-workers", "--engine", "local", "--workers", "2")


def ray_workers(place: Path, job: Job) -> Faults:
    """Kills processes of Ray."""
    return kill_workers(job, KILLS, "ray-workers", "--engine", "ray", "--workers", "2")


def driver(place: Path, job: Job) -> Faults:
    """Kills the driver, half of the times while two other processes work for it."""
    total = Faults()
    for workers in ("1", "2"):
        options = ("--engine", "local", "--workers", workers)
        faults = kill_driver(job, KILLS // 2, f"driver-{workers}", DRIVER_SECONDS, *options)
        total.kills, total.runs = total.kills + faults.kills, total.runs + faults.runs
        total.problems += faults.problems
        total.notes.update(faults.notes)
    return total


def ray_driver(place: Path, job: Job) -> Faults:
    """Kills the driver of a run on Ray, which starts Ray anew each time."""
    options = ("--engine", "ray", "--workers", "2")
    return kill_driver(job, RAY_DRIVER_KILLS, "ray-driver", DRIVER_SECONDS, *options)


def ray_nodes(place: Path, job: Job) -> Faults:
    """Kills nodes of a Ray cluster."""
    return kill_nodes(job, "ray-nodes", kills=3)


def full_disk(place: Path, job: Job) -> Faults:
    """Writes to a small tmpfs until it is full."""
    disk = place / "disk"
    disk.mkdir()
    size = f"size={DISK_MEGABYTES}m"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(disk)], check=True)

    def room() -> None:
        subprocess.run(["mount", "-o", "remount,size=500m", str(disk)], check=True)

    try:
        return fill_disk(job, disk / "out", room, "--engine", "local")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def corrupt_inputs(place: Path, job: Job) -> Faults:
    """Damages every fifth of the input files in every way, one at a time; on a tiny model."""
    total, encoder = Faults(), SentenceEncoder.from_pretrained(TINY_MODEL)
    for damage in DAMAGES:
        for number in range(0, FILES, 5):
            with TemporaryDirectory(dir=place) as folder:
                faults = corrupt_one(Path(folder), encoder, number, damage)
            total.kills, total.runs = total.kills + 1, total.runs + faults.runs
            total.problems += [f"{damage}, file {number}: {text}" for text in faults.problems]
            total.notes.update({f"{damage}, not noticed": faults.notes["not noticed"]})
    return total


SAME = "every row once, the bytes of an undisturbed run, nothing left behind"
FAULTS = {
    "local-workers": Fault("local worker, killed while it writes a shard", SAME, local_workers),
    "ray-workers": Fault("Ray worker, killed while it writes a shard", SAME, ray_workers),
    "ray-nodes": Fault("node of a Ray cluster, killed", SAME, ray_nodes),
    "driver": Fault(
        "driver, killed at a random moment",
        f"no shard incomplete under its name; the next run: {SAME}",
        driver,
    ),
    "ray-driver": Fault(
        "driver of a run on Ray, killed at a random moment",
        f"no shard incomplete under its name; the next run: {SAME}",
        ray_driver,
    ),
    "full-disk": Fault(
        f"disk of {DISK_MEGABYTES} MB, full while shards are written",
        f"an error in words, finished shards valid; with room: {SAME}",
        full_disk,
    ),
    "corrupt-inputs": Fault(
        "one of 100 input files damaged (truncated, one bit flipped, overwritten, empty)",
        "named; by option left out and counted, the rest done",
        corrupt_inputs,
    ),
}


def main() -> None:
    """Tries the faults that are named, or all; the exit code is 1 if something did not hold."""
    names = [name for name in sys.argv[1:] if name != "--write"] or list(FAULTS)
    rows, failed = _earlier_rows(), False
    with TemporaryDirectory(prefix="genpool-faults-") as folder:
        place = Path(folder)
        job = Job.prepare(place, None, files=20, rows=1000, shard_rows=250)
        for name in names:
            fault, began = FAULTS[name], time.monotonic()
            outcome = fault.run(place, job)
            failed |= bool(outcome.problems)
            held = "yes" if not outcome.problems else f"no: {'; '.join(outcome.problems[:3])}"
            row = [fault.title, str(outcome.kills), fault.must_hold, held, _notes(outcome)]
            rows[fault.title] = row
            print(f"{name}: {row}, {time.monotonic() - began:.0f} s", flush=True)
    table = markdown_table(COLUMNS, [rows[f.title] for f in FAULTS.values() if f.title in rows])
    print(table)
    if "--write" in sys.argv:
        write_section("reliability", HEADING, [INTRODUCTION, table, versions_line()])
    sys.exit(failed)


def _earlier_rows() -> dict[str, list[str]]:
    """Returns the rows that the page has already, by the title of the fault."""
    path = page_path("reliability")
    page = path.read_text(encoding="utf-8") if path.is_file() else ""
    section = page.partition(f"## {HEADING}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:1] == "|"]
    return {row[0]: [*row, ""][: len(COLUMNS)] for row in rows}


def _notes(outcome: Faults) -> str:
    notes = Counter(outcome.notes)
    return ", ".join(f"{name}: {count}" for name, count in sorted(notes.items()) if count)


INTRODUCTION = one_line("""
`python -m benchmarks.faults.bulk_encoding --write`: the embedded model encodes 20 text files of
1,000 rows into 80 shards with `genpool encode --engine local` or `--engine ray`, two workers on one
machine (one in half of the runs whose driver is killed), and processes are killed with SIGKILL.
Damaged inputs are every fifth of 100 files of Parquet, CSV, and both CSV and lines in gzip, in
every way, one at a time, encoded by a tiny model. What was not noticed cannot be: CSV has no
checksum, so that it ends early or has another character as far as a reader knows, and three flipped
bits of Parquet were in a part of its footer that changes no row. Short forms run with every
`make test` (`tests/faults/test_bulk_encoding.py`, `tests/integrations/test_ray.py`).
""")


if __name__ == "__main__":
    main()
