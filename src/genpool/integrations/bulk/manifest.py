"""_manifest.jsonl: what a folder of shards is, and which shards are done; the summary of a run.

The first line is the job; lines for input files and finished shards follow as they are done.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from genpool.data.table_files import Start
from genpool.disk.atomic import atomic_file
from genpool.disk.folder_format import require_version, write_text
from genpool.errors import FolderError
from genpool.integrations.bulk.inputs import InputFile
from genpool.integrations.bulk.shard import ShardResult

#: readers of a folder of Parquet leave out names that begin with an underscore
MANIFEST = "_manifest.jsonl"
FORMAT, FORMAT_VERSION = "genpool-shards", 1
#: differences that an error names
MAX_DIFFERENCES = 5


@dataclass
class Manifest:
    """The manifest of a folder, open for writing."""

    path: Path
    inputs: dict[str, InputFile] = field(default_factory=dict)  # whose slices are known, by name
    shards: dict[str, ShardResult] = field(default_factory=dict)  # that are finished, by name

    @classmethod
    def open(cls, folder: Path, job: dict[str, Any]) -> Manifest:
        """Opens the manifest of a folder, or begins one; a folder of another job is an error."""
        manifest = cls(folder / MANIFEST)
        head = {"format": FORMAT, "format_version": FORMAT_VERSION, **job}
        if not manifest.path.is_file():
            # Locks and temporary files begin with a dot.
            names = sorted(path.name for path in folder.iterdir() if path.name[0] != ".")
            if names:
                raise FolderError(
                    f"{folder} contains something else, without {MANIFEST}: "
                    f"{', '.join(names[:5])}. Choose a new or empty folder."
                )
            with atomic_file(manifest.path) as temporary:
                write_text(temporary, _line("job", head))
            return manifest
        first, *records = read_records(manifest.path)
        _require_same(folder, first, json.loads(json.dumps(head)))
        try:
            for record in records:
                if (kind := record.pop("kind")) == "input":
                    starts = [Start(*start) for start in record.pop("starts")]
                    planned = InputFile(path=Path(), starts=starts, **record)
                    manifest.inputs[planned.name] = planned
                elif kind == "shard":
                    result = ShardResult(**record)
                    manifest.shards[result.name] = result
        except (TypeError, KeyError) as error:
            raise FolderError(f"{manifest.path} is damaged: {error}. Remove the folder.") from None
        return manifest

    @property
    def rows(self) -> int:
        """The rows of all finished shards."""
        return sum(result.rows for result in self.shards.values())

    def add_input(self, planned: InputFile) -> None:
        """Records where the slices of an input file begin."""
        self.inputs[planned.name] = planned
        record = asdict(planned)
        del record["path"]  # the name recognises it, wherever the command is run
        self._append("input", record)

    def add_shard(self, result: ShardResult) -> None:
        """Records a finished shard, after its file has its name."""
        self.shards[result.name] = result
        self._append("shard", asdict(result))

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
    """Returns the lines of a manifest; a last line that was never finished is removed."""
    try:
        data = path.read_bytes()
        complete = data[: data.rfind(b"\n") + 1]
        if len(complete) < len(data):
            with path.open("rb+") as file:
                file.truncate(len(complete))
        records = [json.loads(line) for line in complete.splitlines()]
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{path} cannot be read: {error}") from error
    if not records or not all(isinstance(record, dict) for record in records):
        raise FolderError(f"{path} is damaged: expected JSON objects, one per line.")
    return records


def _line(kind: str, record: dict[str, Any]) -> str:
    return json.dumps({"kind": kind, **record}) + "\n"


def _require_same(folder: Path, earlier: dict[str, Any], now: dict[str, Any]) -> None:
    if earlier.get("format") != FORMAT:
        raise FolderError(f"{folder / MANIFEST} is not of genpool encode. Choose another folder.")
    require_version(earlier.get("format_version"), FORMAT_VERSION, folder / MANIFEST)
    different = [
        _difference(name, earlier.get(name), value)
        for name, value in now.items()
        if earlier.get(name) != value
    ]
    if different:
        raise FolderError(
            f"{folder} was begun with something else: {'; '.join(different[:MAX_DIFFERENCES])}. "
            "Choose another folder, or run the command as it was."
        )


def _difference(name: str, earlier: object, now: object) -> str:
    changes = []
    if isinstance(earlier, list) and isinstance(now, list):
        before, after = set(map(str, earlier)), set(map(str, now))
        changes = [f"{entry} no longer there" for entry in sorted(before - after)]
        changes += [f"{entry} new" for entry in sorted(after - before)]
    shown = f": {', '.join(changes[:MAX_DIFFERENCES])}" if changes else f" was {earlier}, now {now}"
    return name + shown


@dataclass
class BulkSummary:
    """What a folder of shards contains, and what this run added."""

    shards: int = 0
    rows: int = 0
    tokens: int = 0
    cut_sentences: int = 0
    cut_tokens: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    earlier_rows: int = 0  # that earlier runs had encoded
    bad_files: dict[str, str] = field(default_factory=dict)  # not read, or only in part: why
    unread_rows: int = 0  # of these files, as far as known
    seconds: float = 0.0  # that this run took

    def add(self, result: ShardResult) -> None:
        """Adds a finished shard."""
        self.shards += 1
        for name in ("rows", "tokens", "cut_sentences", "cut_tokens", "bytes"):
            setattr(self, name, getattr(self, name) + getattr(result, name))
        self.skipped.update(result.skipped)

    def lines(self) -> list[str]:
        """Returns the summary for people."""
        new = self.rows - self.earlier_rows
        rate = f" ({new / self.seconds:,.0f} rows/s)" if new and self.seconds > 0 else ""
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.skipped.items())
        lines = [
            f"{self.rows:,} rows ({self.earlier_rows:,} of them by earlier runs), "
            f"{self.tokens:,} tokens, in {self.shards:,} shards of {self.bytes:,} bytes together; "
            f"{self.seconds:,.1f} s{rate}",
            f"cut at the maximum length: {self.cut_sentences:,} sentences by "
            f"{self.cut_tokens:,} tokens",
            f"rows left out: {reasons or 0}",
            f"input files that could not be read: {len(self.bad_files):,}",
            *(f"  {problem}" for problem in self.bad_files.values()),
        ]
        if self.unread_rows:
            lines.append(f"  rows of them that are missing, as far as known: {self.unread_rows:,}")
        return lines
