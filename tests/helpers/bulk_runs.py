"""Inputs for bulk encoding, and what is true of its output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

from genpool.disk.folder_format import data_checksum
from genpool.integrations.bulk.manifest import MANIFEST
from tests.helpers.small_models import WORDS


def sentence(number: int) -> str:
    """A sentence of known words, another one for every number below some thousands."""
    words = [WORDS[number // len(WORDS) ** place % len(WORDS)] for place in range(4)]
    return " ".join(words[: 1 + number % 4])


def write_texts(folder: Path, files: int, rows: int) -> list[str]:
    """Writes text files and returns the ids of all their rows, sorted."""
    folder.mkdir(parents=True, exist_ok=True)
    ids = []
    for number in range(files):
        name = f"{number:03d}.txt"
        lines = [sentence(number * rows + row) for row in range(rows)]
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
        ids += [f"{folder.name}/{name}:{row + 1}" for row in range(rows)]
    return sorted(ids)


def shard_bytes(folder: Path) -> dict[str, bytes]:
    """The content of all finished shards, by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*.parquet"))}


def read_ids(folder: Path) -> list[str]:
    """The ids of all shards, sorted; every file must be readable."""
    ids: list[str] = []
    for path in folder.glob("*.parquet"):
        ids += parquet.read_table(path, columns=["id"])["id"].to_pylist()
    return sorted(ids)


def manifest_shards(folder: Path) -> dict[str, dict[str, Any]]:
    """The shards of the manifest, by name."""
    lines = (folder / MANIFEST).read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return {record["name"]: record for record in records if record["kind"] == "shard"}


def problems(folder: Path, expected_ids: list[str], expected: dict[str, bytes]) -> list[str]:
    """What is wrong with a finished folder; the expected shards are those of a calm run."""
    found = []
    if read_ids(folder) != expected_ids:
        found.append("rows are lost or doubled")
    if shard_bytes(folder) != expected:
        found.append("the shards differ from those of an undisturbed run")
    checksums = {name: data_checksum(data) for name, data in shard_bytes(folder).items()}
    if {name: record["checksum"] for name, record in manifest_shards(folder).items()} != checksums:
        found.append("the manifest has other checksums")
    left = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    if left:
        found.append(f"left behind: {left}")
    return found
