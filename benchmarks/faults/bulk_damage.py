"""Bulk encoding of damaged inputs, and on a disk that is full."""

from __future__ import annotations

import gzip
import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as arrow
import pyarrow.parquet as parquet

from benchmarks.faults.bulk_kills import Faults, Job, environment
from genpool.integrations.bulk.shard import read_metadata
from genpool.model import SentenceEncoder
from tests.helpers.bulk_runs import problems, read_ids, sentence

FILES, ROWS = 100, 20


def write_inputs(folder: Path) -> list[str]:
    """Writes 100 files of four kinds; returns their names."""
    folder.mkdir(parents=True)
    names = []
    for number in range(FILES):
        texts = [sentence(number * ROWS + row).replace(",", "and") for row in range(ROWS)]
        lines = "".join(f"{text}\n" for text in texts)
        kind = number % 4
        names.append(f"{number:03d}" + (".parquet", ".csv", ".txt.gz", ".csv.gz")[kind])
        path = folder / names[-1]
        if kind == 0:
            parquet.write_table(arrow.table({"text": texts}), path)
        elif kind == 1:
            path.write_text("text\n" + lines)
        else:
            # Compressed text has a checksum at its end; so damage anywhere is noticed.
            path.write_bytes(gzip.compress(("text\n" * (kind == 3) + lines).encode(), mtime=0))
    return names


def truncate(data: bytes) -> bytes:
    """The first half."""
    return data[: len(data) // 2]


def flip(data: bytes) -> bytes:
    """One bit in the middle is another one."""
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :]


def overwrite(data: bytes) -> bytes:
    """All bytes are others."""
    return bytes(byte ^ 0xA5 for byte in data)


def empty(data: bytes) -> bytes:
    """Nothing is left."""
    return b""


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": truncate,
    "one bit flipped": flip,
    "overwritten": overwrite,
    "empty": empty,
}


def corrupt_one(place: Path, encoder: SentenceEncoder, number: int, damage: str) -> Faults:
    """Damages one of 100 input files: it must be named, and by option left out.

    Args:
        place: an empty folder.
        encoder: what encodes.
        number: which file.
        damage: one of DAMAGES.
    """
    from genpool.errors import DataError
    from genpool.integrations.bulk import BulkOptions, encode_bulk

    names = write_inputs(place / "in")
    path = place / "in" / names[number]
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    faults = Faults(kills=1, runs=2)
    options = BulkOptions(column="text", shard_rows=10)
    try:
        encode_bulk(encoder, [place / "in"], place / "out", options, show_progress=False)
        # One bit of a text is another text; only a checksum could tell.
        faults.notes["not noticed"] += 1
        return faults
    except DataError as error:
        if path.name not in str(error) or "--bad-" not in str(error):
            faults.problems.append(f"{path.name} is not named: {error}")
    options = BulkOptions(column="text", shard_rows=10, bad_files="skip", bad_rows="skip")
    summary = encode_bulk(encoder, [place / "in"], place / "skip", options, show_progress=False)
    if list(summary.bad_files) != [f"in/{path.name}"] and not summary.skipped:
        faults.problems.append(f"bad files are {summary.bad_files}, rows {summary.skipped}")
    others = {f"in/{name}:{row}" for name in names if name != path.name for row in range(1, 21)}
    if not others <= set(read_ids(place / "skip")):
        faults.problems.append("rows of other files are missing")
    return faults


def fill_disk(job: Job, folder: Path, room: Callable[[], None], *options: str) -> Faults:
    """Encodes on a disk that is full before the end, then again with room.

    Args:
        job: what to encode.
        folder: the output, on that disk.
        room: makes room on it.
        *options: of the command.
    """
    faults = Faults(kills=1, runs=2)
    command = job.command(os.path.relpath(folder, job.place), *options)
    first = subprocess.run(command, capture_output=True, text=True, env=environment())
    faults.problems += _complaints(first.returncode, first.stderr)
    finished = list(folder.glob("part-*.parquet"))
    faults.notes["shards that were finished"] = len(finished)
    faults.problems += [
        f"{path.name} is not complete"
        for path in finished
        if read_metadata(path).get("name") != path.name
    ]
    room()
    subprocess.run(command, check=True, capture_output=True, env=environment())
    faults.problems += problems(folder, job.ids, job.expected)
    return faults


def _complaints(code: int, said: str) -> list[str]:
    words = ("No space left on device", "File too large")
    if code == 2 and any(word in said for word in words) and "Traceback" not in said:
        return []
    return [f"exit code {code}, said: {said[-500:]}"]


def limit_file_size(size: int) -> None:
    """No file that this process writes may be larger: what a test can do without a disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
