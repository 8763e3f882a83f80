"""All comparisons by name, and how their rows are shown and kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import torch

from benchmarks.pages import markdown_table, one_line, versions_line
from benchmarks.speed import encoding
from benchmarks.speed.harness import Row
from benchmarks.speed.int8 import int8_rows, worker_rows
from benchmarks.speed.memory import memory_rows
from benchmarks.speed.startup import startup_rows
from benchmarks.speed.stream_memory import stream_memory_rows
from benchmarks.speed.training import SIZES, training_rows
from genpool.errors import InputError, unknown_name
from genpool.training.report import versions

COMPARISONS: dict[str, Callable[[int], list[Row]]] = {
    **{f"training-{name}": partial(training_rows, size) for name, size in SIZES.items()},
    "memory": memory_rows,
    "memory-stream": stream_memory_rows,
    "encode-textbook": encoding.encode_textbook,
    "encode-minilm": encoding.encode_minilm,
    "encode-st-lstm": encoding.encode_st_lstm,
    "embedded-minilm": encoding.embedded_minilm,
    "int8": int8_rows,
    "workers": worker_rows,
    "long-sentences": encoding.long_sentences,
    "startup": startup_rows,
}
HEADER = ["comparison", "ratio", "spread", "goal", "met", "beside it"]
INTRODUCTION = """
Both sides of a row take turns in one process (memory and startup: in processes of their own). A
ratio is the median of the rounds, the spread its lowest and highest. `limit-*` is the share of the
time in which sgemm, measured between the rounds on the same threads, would do the operations that
the equations need. `import`, `load` (of the embedded encoder) and `similarity` (the command, with
two sentences) are the CPU seconds of a process beside those of one that only imports PyTorch.
"""
BATCHES = """
Training batches are drawn at random, as by a shuffled loader; `*-sorted` has lengths of half the
deviation, as batches cut from buffers sorted by length have, with less padding to save. Rows about
encoding vary by a tenth from run to run.
"""


def run(only: str | None, rounds: int, json_file: Path | None, write: Path | None) -> list[Row]:
    """Runs the comparisons and returns their rows, printing each row at once."""
    if only is not None and only not in COMPARISONS:
        raise InputError(unknown_name("comparison", only, COMPARISONS))
    about = f"{torch.get_num_threads()} threads; {versions_line()}"
    print(about)
    rows: list[Row] = []
    for name, compare in COMPARISONS.items():
        if only in (None, name):
            for row in compare(rounds):
                print("  ".join(_cells(row)), flush=True)
                rows.append(row)
    if json_file is not None:
        objects = [{**row.to_dict(), "versions": versions()} for row in rows]
        json_file.write_text(json.dumps(objects, indent=2) + "\n", encoding="utf-8")
    if write is not None:
        write.write_text(page(rows, about, rounds), encoding="utf-8")
    return rows


def _cells(row: Row) -> list[str]:
    low, high = row.spread
    goal = f"{'<=' if row.at_most else '>='} {row.goal:g}"
    digits = 4 if row.name.endswith("cosine") else 2
    return [
        f"{row.name:18}",
        f"{row.ratio:.{digits}f}",
        f"{low:.{digits}f} to {high:.{digits}f}",
        goal,
        "yes" if row.met else "no",
        row.note,
    ]


def page(rows: Iterable[Row], about: str, rounds: int) -> str:
    """Returns the page results/bench.md."""
    parts = [
        "# Speed and memory",
        f"`python -m benchmarks --write`, {rounds} rounds; seed 0; {about}.",
        one_line(INTRODUCTION),
        one_line(BATCHES),
        markdown_table(HEADER, [_cells(row) for row in rows]),
    ]
    return "\n\n".join(parts) + "\n"
