"""_manifest.jsonl: what a folder of shards is, and which shards are done.

The first line is the job; lines for input files and finished shards follow as they are done, and
are never changed. A process that is killed while it writes a line leaves part of one, which the
next run removes.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from genpool.disk.atomic import atomic_file, require_version
from genpool.errors import FolderError
from genpool.jobs.bulk.plan import PlannedFile
from genpool.jobs.bulk.shard import ShardResult

#: readers of a folder of Parquet leave out names that begin with an underscore
MANIFEST = "_manifest.jsonl"
FORMAT, FORMAT_VERSION = "genpool-shards", 1
#: differences that an error names
MAX_DIFFERENCES = 5


@dataclass
class Manifest:
    """The manifest of a folder, open for writing.

    Attributes:
        path: the file.
        inputs: the input files whose slices are known, by name.
        shards: the finished shards, by name.
    """

    path: Path
    inputs: dict[str, PlannedFile] = field(default_factory=dict)
    shards: dict[str, ShardResult] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path, job: dict[str, Any]) -> Manifest:
        """Opens the manifest of a folder, or begins one.

        Args:
            folder: the folder, which nobody else writes.
            job: what is encoded and how, as JSON has it.

        Raises:
            FolderError: the folder holds another job, or something else.
            DataError: the manifest cannot be written.
        """
        path = folder / MANIFEST
        manifest = cls(path)
        head = {"format": FORMAT, "format_version": FORMAT_VERSION, **job}
        if not path.is_file():
            _require_empty(folder)
            with atomic_file(path) as temporary:
                temporary.write_text(_line("job", head), encoding="utf-8", newline="\n")
            return manifest
        records = read_records(path)
        if not records or records[0].get("kind") != "job":
            raise FolderError(f"{path} is damaged: its first line is not a job. Remove the folder.")
        _require_same(folder, records[0], json.loads(json.dumps(head)))
        for record in records[1:]:
            manifest._take(record)
        return manifest

    def add_input(self, planned: PlannedFile) -> None:
        """Notes where the slices of an input file begin."""
        self.inputs[planned.name] = planned
        self._append("input", asdict(planned))

    def add_shard(self, result: ShardResult) -> None:
        """Notes a finished shard, after its file has its name."""
        self.shards[result.name] = result
        self._append("shard", asdict(result))

    def _take(self, record: dict[str, Any]) -> None:
        kind = record.pop("kind", None)
        try:
            if kind == "input":
                planned = PlannedFile.from_json(record)
                self.inputs[planned.name] = planned
            elif kind == "shard":
                result = ShardResult(**record)
                self.shards[result.name] = result
        except (TypeError, KeyError) as error:
            raise FolderError(f"{self.path} is damaged: {error}. Remove the folder.") from None

    def _append(self, kind: str, record: dict[str, Any]) -> None:
        try:
            with self.path.open("a", encoding="utf-8", newline="\n") as file:
                file.write(_line(kind, record))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise FolderError(
                f"{self.path} cannot be written: {error.strerror or error}. What is finished "
                "stays valid; make room and run the command again."
            ) from error


def read_records(path: Path) -> list[dict[str, Any]]:
    """Returns the lines of a manifest; a last line that was never finished is removed.

    Raises:
        FolderError: the file cannot be read.
    """
    try:
        data = path.read_bytes()
        complete = data[: data.rfind(b"\n") + 1]
        if len(complete) < len(data):
            with path.open("rb+") as file:
                file.truncate(len(complete))
        records = [json.loads(line) for line in complete.splitlines()]
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{path} cannot be read: {error}") from error
    if not all(isinstance(record, dict) for record in records):
        raise FolderError(f"{path} is damaged: expected one JSON object per line.")
    return records


def _line(kind: str, record: dict[str, Any]) -> str:
    return json.dumps({"kind": kind, **record}) + "\n"


def _require_empty(folder: Path) -> None:
    # Locks and temporary files begin with a dot.
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if names:
        raise FolderError(
            f"{folder} contains something else, without {MANIFEST}: {', '.join(names[:5])}. "
            "Choose a new or empty folder."
        )


def _require_same(folder: Path, earlier: dict[str, Any], now: dict[str, Any]) -> None:
    if earlier.get("format") != FORMAT:
        raise FolderError(f"{folder / MANIFEST} is not of genpool encode. Choose another folder.")
    require_version(earlier.get("format_version"), FORMAT_VERSION, folder / MANIFEST)
    different = [name for name in now if earlier.get(name) != now[name]]
    if different:
        named = [_difference(name, earlier.get(name), now[name]) for name in different]
        raise FolderError(
            f"{folder} was begun with something else: {'; '.join(named[:MAX_DIFFERENCES])}. "
            "Choose another folder, or run the command as it was."
        )


def _difference(name: str, earlier: object, now: object) -> str:
    if isinstance(earlier, list) and isinstance(now, list):
        gone = sorted(set(map(str, earlier)) - set(map(str, now)))
        new = sorted(set(map(str, now)) - set(map(str, earlier)))
        parts = [
            f"{len(names)} {what} ({', '.join(names[:3])})"
            for names, what in ((gone, "no longer there"), (new, "new"))
            if names
        ]
        return f"{name}: {' and '.join(parts) or 'another order'}"
    return f"{name} was {earlier}, now {now}"
