"""What one core does per second at each stage of bulk encoding: read, split, encode, write.

Measured in CPU seconds of the process, which other work on the machine hardly changes; writing also
waits for the disk.
"""

from __future__ import annotations

import csv
import json
import statistics
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks.data import data_path, has_data
from benchmarks.speed.sentences import make_sentences
from genpool import SentenceEncoder
from genpool.data import TableReader
from genpool.inference import QuickEncoder
from genpool.inference.sentence_vectors import map_by_length
from genpool.integrations.bulk.inputs import VECTOR_TYPES, BulkOptions, InputFile, plan_file
from genpool.integrations.bulk.shard import Row, ShardSettings, read_rows, shard_writer, write_rows

ENGLISH = "english/sentences.tsv.xz"
ROWS, ROUNDS = 20_000, 3
KINDS = ("txt", "csv", "jsonl", "parquet")
#: rows of the Parquet file: of one, only the footer is read to count them
PARQUET_ROWS = 1_000_000
BATCH = BulkOptions().batch_size


def corpus_sentences(count: int) -> list[str]:
    """Returns sentences of many sources, or of SNLI or generated scenes where there are none."""
    if not has_data(ENGLISH):
        return make_sentences(count)
    reader = TableReader(data_path(ENGLISH), first="text", labelled=False)
    stream = reader.read(reader.splits()[0])
    return [example.first for _, example in zip(range(count), stream, strict=False)]


def write_corpus(folder: Path, sentences: list[str]) -> dict[str, Path]:
    """Writes the sentences as a file of every kind."""
    import pyarrow as arrow
    from pyarrow import parquet

    paths = {kind: folder / f"corpus.{kind}" for kind in KINDS}
    lines = [" ".join(sentence.split()) for sentence in sentences]
    paths["txt"].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with paths["csv"].open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["text"], *([line] for line in lines)])
    records = "".join(json.dumps({"text": line}) + "\n" for line in lines)
    paths["jsonl"].write_text(records, encoding="utf-8")
    repeated = (lines * (PARQUET_ROWS // len(lines) + 1))[:PARQUET_ROWS]
    parquet.write_table(arrow.table({"text": repeated}), paths["parquet"])
    return paths


class Stages:
    """The stages by name, each as a function, on the embedded model.

    Args:
        folder: for the files.
        rows: how many sentences. Default: 20,000.
    """

    def __init__(self, folder: Path, rows: int = ROWS) -> None:
        torch.set_num_threads(1)
        self.folder, self.rows = folder, rows
        self.model = SentenceEncoder.from_pretrained()
        self.sentences = corpus_sentences(rows)
        self.paths = write_corpus(folder, self.sentences)
        self.words = self.model.text.words_batch(self.sentences)
        random = np.random.default_rng(0).normal(size=(rows, self.model.output_dim))
        self.vectors = random.astype(np.float32)

    def settings(self, vectors: str = "float32") -> ShardSettings:
        """Returns those of a run with this type of vectors."""
        options = BulkOptions(column="text", vectors=vectors, shard_rows=self.rows)
        return ShardSettings(self.folder, "scale", options, self.model.output_dim, {})

    def all(self) -> dict[str, Callable[[], object]]:
        """Returns every stage."""
        stages: dict[str, Callable[[], object]] = {}
        for kind in KINDS:
            stages[f"count rows, {kind}"] = partial(self.plan, kind)
        for kind in KINDS:
            stages[f"read, {kind}"] = partial(self.read, kind)
        stages["split into words"] = lambda: self.model.text.words_batch(self.sentences)
        stages["encode"] = lambda: self.encode(False)
        stages["encode, 8-bit weights (--int8)"] = lambda: self.encode(True)
        for vectors in VECTOR_TYPES:
            stages[f"write, {vectors}"] = partial(self.write, vectors)
        return stages

    def plan(self, kind: str) -> InputFile:
        """Finds the slices of a file: what the driver does before the workers start."""
        options = self.settings().options
        return plan_file(InputFile("corpus", self.paths[kind]), 0, "", options)

    def read(self, kind: str) -> int:
        """Reads all rows of a file."""
        shard = next(self.plan(kind).shards(0, self.rows))
        return sum(1 for _ in read_rows(shard, self.settings(), Counter()))

    def encode(self, int8: bool) -> None:
        """Encodes words that are split already, as a shard does."""
        quick = QuickEncoder(self.model, int8=int8)
        for _ in map_by_length(self.words, len, quick.encode_tokenized, BATCH):
            pass

    def write(self, vectors: str) -> int:
        """Writes a shard to the disk; returns its size."""
        path = self.folder / "shard.parquet"
        rows = [Row(f"corpus.txt:{row + 1}", "", ()) for row in range(self.rows)]
        settings = self.settings(vectors)
        with shard_writer(path, settings) as writer:
            for start in range(0, self.rows, 64 * BATCH):
                part = slice(start, start + 64 * BATCH)
                write_rows(writer, rows[part], self.vectors[part], settings)
        return path.stat().st_size


def rows_per_second(stages: Stages, rounds: int = ROUNDS) -> dict[str, float]:
    """Returns the rows per CPU second of every stage: the median of interleaved rounds."""
    torch.set_num_threads(1)
    seconds: dict[str, list[float]] = {}
    stages.read("parquet")  # its first use loads libraries
    for _ in range(rounds):
        for name, work in stages.all().items():
            began = time.process_time()
            work()
            spent = time.process_time() - began
            # To read is to find the slice first; that part is its own stage.
            if name.startswith("read, "):
                spent -= seconds["count rows, " + name.removeprefix("read, ")][-1]
            seconds.setdefault(name, []).append(spent)
    rows = {"count rows, parquet": PARQUET_ROWS}
    return {
        name: rows.get(name, stages.rows) / statistics.median(values)
        for name, values in seconds.items()
    }
