"""What 100 million sentences cost, from measured figures; and training on several processes.

python -m benchmarks.results_pages.scale             prints the page
python -m benchmarks.results_pages.scale --write     also writes results/scale.md
"""

from __future__ import annotations

import argparse
import os
import platform
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.pages import markdown_table, one_line, versions_line, write_page
from benchmarks.results_pages.scale_simulation import (
    RESTART_SECONDS,
    SEED,
    TRIALS,
    WORKERS,
    simulation_table,
)
from benchmarks.results_pages.scale_stages import KINDS, Stages, rows_per_second
from benchmarks.results_pages.scale_training import MORE_EPOCHS, ROUNDS, SETTINGS, training_table
from genpool.integrations.bulk.inputs import VECTOR_TYPES

CORPUS = 100_000_000
WORKER_COUNTS = (1, 8, 64, 512)
ENCODES = {"float weights": "encode", "8-bit weights (--int8)": "encode, 8-bit weights (--int8)"}


def stage_table(rates: dict[str, float]) -> str:
    """Returns rows per CPU second and the CPU hours of the corpus, for every stage."""
    rows = [[name, f"{rate:,.0f}", f"{CORPUS / rate / 3600:,.2f}"] for name, rate in rates.items()]
    return markdown_table(["stage", "rows per CPU second", "CPU hours, 100 million"], rows)


def storage_table(stages: Stages) -> str:
    """Returns bytes per row and the size of the corpus, for every type of vectors."""
    rows = []
    for vectors in VECTOR_TYPES:
        size = stages.write(vectors) / len(stages.sentences)
        rows.append([vectors, f"{size:,.0f}", f"{size * CORPUS / 1e9:,.0f}"])
    return markdown_table(["--vectors", "bytes per row", "GB, 100 million"], rows)


def worker_rate(rates: dict[str, float], encode: str, kind: str) -> float:
    """Returns the rows per second of a worker, which does one stage after the other."""
    names = (f"read, {kind}", "split into words", ENCODES[encode], "write, float32")
    return 1 / sum(1 / rates[name] for name in names)


def bottleneck_table(rates: dict[str, float], bytes_per_row: float) -> str:
    """Returns the hours of workers and driver, and what the disk has to take, by workers."""
    rows = []
    for encode in ENCODES:
        for kind in ("parquet", "csv"):
            counting = CORPUS / rates[f"count rows, {kind}"]
            for workers in WORKER_COUNTS:
                encoding = CORPUS / worker_rate(rates, encode, kind) / workers
                share = counting / (counting + encoding)
                written = bytes_per_row * CORPUS / encoding / 1e6
                rows.append(
                    [
                        encode,
                        kind,
                        f"{workers}",
                        f"{encoding / 3600:,.2f}",
                        f"{counting / 60:,.1f}",
                        f"{100 * share:.1f} %",
                        f"{written:,.0f}",
                    ]
                )
    header = ["model", "input", "workers", "hours of encoding", "minutes of counting by the driver"]
    return markdown_table([*header, "counting, share of the time", "MB/s written"], rows, text=2)


def page(rates: dict[str, float], stages: Stages, training: str) -> list[str]:
    """Returns the parts of the page."""
    rate = worker_rate(rates, "float weights", "parquet")
    quick = worker_rate(rates, "8-bit weights (--int8)", "parquet")
    tokens = sum(map(len, stages.words)) / len(stages.words)
    size = stages.write("float32") / len(stages.sentences)
    parts = [rates[f"read, {kind}"] for kind in KINDS]
    return [
        "# Scale",
        one_line(f"""
        `python -m benchmarks.results_pages.scale --write` measured every figure that is not marked
        as computed, on {_machine()}, one thread per process, while much other work ran on the
        machine: stages in CPU seconds (median of 3 interleaved rounds), so without waiting for the
        disk; training in CPU seconds and by the clock. The text is
        {len(stages.sentences):,} sentences of {tokens:.1f} tokens on average, the model the
        embedded encoder ({stages.model.output_dim} dimensions)."""),
        "## 100 million sentences (computed from the measured rates)",
        one_line(f"""
        One core encodes {rate:,.0f} sentences per second from file to shard ({quick:,.0f} with
        `--int8`): {CORPUS / rate / 3600:,.0f} CPU hours ({CORPUS / quick / 3600:,.0f} with
        `--int8`) for 100 million."""),
        stage_table(rates),
        storage_table(stages),
        "## Where the bottleneck moves (computed)",
        one_line("""
        A worker reads, splits, encodes and writes its own shards; only counting the rows of the
        inputs is done by the driver alone, before the first shard. Parquet says how many rows it
        has (measured on a file of a million); lines have to be counted, and the rows of CSV parsed,
        because a quoted field may contain line ends. The counts are kept in the manifest: a run
        that is continued does not count again."""),
        bottleneck_table(rates, size),
        one_line("""
        Up to 64 workers encoding is nearly all of the time, with Parquet even at 512; what the disk
        must take grows with the workers and is the next limit (the last column, for float32). With
        CSV, counting by the driver is a quarter of the time at 64 workers and most of it at 512.
        """),
        _advice(rates, parts, size),
        "## Repeated work when workers die (simulated)",
        one_line(f"""
        {WORKERS} workers of {rate:,.0f} rows per second encode 100 million rows; each dies at
        random after the mean time of its column, loses the shard that it was working on, and is
        back after {RESTART_SECONDS:g} seconds (`benchmarks/results_pages/scale_simulation.py`, mean
        of {TRIALS} runs, seeds from {SEED}). Cells: repeated work as a share of all work, in
        brackets the formula (e^x - 1 - x) / x with x = time of a shard / life of a worker; deaths;
        how much longer the run takes than without deaths and with perfectly even work (large
        shards also leave workers idle at the end)."""),
        simulation_table(CORPUS, rate),
        one_line("""
        The default of 50,000 rows per shard loses less than one percent even if every worker dies
        once an hour; shards of a million rows are for machines that stay."""),
        "## Training on several processes",
        one_line(f"""
        `torchrun --nproc_per_node N -m genpool train ...`: {", ".join(SETTINGS)} on the recipe
        `rules`, processes of one thread on one machine of {os.cpu_count()} cores, medians of
        {ROUNDS} interleaved rounds. CPU seconds are those of {MORE_EPOCHS - 1} epochs (a run of
        {MORE_EPOCHS} less a run of one). Speed by the clock suffered from other work on the
        machine, most of all that of two processes, which wait for each other at every step.
        Computed: the work is shared evenly, and the exchange of gradients costs what two processes
        lost, times 2 (n - 1) / n (a ring); waiting is not in it."""),
        training,
        WHAT_CHANGES,
        versions_line(),
    ]


def _machine() -> str:
    return f"{os.cpu_count()} cores of {platform.machine()} ({platform.system()})"


def _advice(rates: dict[str, float], reading: list[float], size: float) -> str:
    slowest = min(reading)
    encode, write = rates["encode"], rates["write, float32"]
    counting = rates["count rows, csv"]
    return "\n".join(
        [
            "| what is slow | how it shows | what to turn |",
            "|---|---|---|",
            f"| encoding ({encode:,.0f} rows per CPU second; reading {slowest:,.0f} or more, "
            f"writing {write:,.0f}) | all workers busy | `--int8`, more `--workers`, "
            "`--engine ray --address`; a smaller model |",
            f"| counting by the driver ({counting:,.0f} rows per second of CSV) | `counting rows` "
            "lasts, workers wait | Parquet inputs, or text instead of CSV |",
            "| large compressed inputs | shards of one file get slower towards its end: each is "
            "read from the start | many files, or plain or Parquet ones |",
            f"| the disk ({size:,.0f} bytes per row) | workers wait in writing | "
            "`--vectors float16` (half) or `int8` (a quarter), `--truncate-dim` |",
            "| the end of the run | few workers busy | smaller `--shard-rows` |",
            "| workers that die | repeated work, below | smaller `--shard-rows` |",
        ]
    )


WHAT_CHANGES = one_line("""
What changes with N processes: `training.batch_size` stays the size of the whole batch, of which
each process computes every N-th row; learning rate, number of steps and metrics stay the same, and
without dropout so do the weights, up to rounding (`tests/training/test_processes.py`). Dropout
draws other numbers. The contrastive loss and penalties with `penalty.average = "batch"` see the
rows of one process at a time. The dev set is shared out too. Only the first process writes files.
`training.accumulate = K` computes the rows of a process in K parts whose gradients are added: the
same step in less memory (`tests/training/test_processes.py`); gradients are exchanged once a step.
A run is resumed with the same command and `--resume`; with another number of processes it
continues too, but not bit for bit. On several machines torchrun's `--nnodes` and `--rdzv-endpoint`
name the others; every machine needs the data, and the folder of the run is written by the first.
""")


def main() -> None:
    """Measures and prints the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write results/scale.md")
    arguments = parser.parse_args()
    training = training_table()
    with TemporaryDirectory() as folder:
        stages = Stages(Path(folder))
        rates = rows_per_second(stages)
        parts = page(rates, stages, training)
    if arguments.write:
        write_page("scale", parts)
    else:
        print("\n\n".join(parts))


if __name__ == "__main__":
    main()
