"""Training on one process and on two, measured; and what more of them would give, computed.

Speed by the clock means little where other work runs on the same cores: processes wait for each
other at every step. So the CPU seconds of the steps are measured too: those of runs of several
epochs less those of one, so that the start of a process does not count.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.pages import markdown_table

ROUNDS = 2
PROCESSES = (1, 2)
PROJECTED = (4, 8, 16)
MORE_EPOCHS = 6
SETTINGS = (
    "reader.sizes=[600, 30, 30]",
    "training.batch_size=60",
    "encoder.hidden_dim=150",
    "training.schedule=constant",
)


class Speed(NamedTuple):
    """Tokens per second by the clock, and CPU seconds of each process for the further epochs."""

    tokens_per_second: float
    cpu_seconds: float


def projected_speedup(processes: int, speedup_of_two: float) -> float:
    """Returns the speed of some processes as a multiple of that of one.

    The work of a step is shared evenly. What two processes lose is the exchange of gradients, in
    which each passes 2 (n - 1) / n times their size (a ring).

    Args:
        processes: how many.
        speedup_of_two: that was measured.
    """
    exchange = max(1 / speedup_of_two - 1 / 2, 0.0)  # of a step of one process
    return 1 / (1 / processes + exchange * 2 * (processes - 1) / processes)


def measure(processes: int) -> Speed:
    """Trains on some processes of one thread each."""
    (_, short), (rate, long) = (_train(processes, epochs) for epochs in (1, MORE_EPOCHS))
    return Speed(rate, (long - short) / processes)


def _train(processes: int, epochs: int) -> tuple[float, float]:
    """Returns the tokens per second of the last epoch, and the CPU seconds of all processes."""
    launcher = ("-m", "torch.distributed.run", "--nproc_per_node", str(processes), "--standalone")
    before = _cpu_seconds()
    with TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = ("-m", "genpool", "train", "rules", "--no-test", "--out", str(out))
        settings = [*SETTINGS, f"training.epochs={epochs}"]
        sets = [part for setting in settings for part in ("--set", setting)]
        subprocess.run(
            [sys.executable, *launcher, *command, *sets],
            check=True,
            capture_output=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    rate = float(json.loads(lines[-1])["tokens_per_second"])
    return rate, _cpu_seconds() - before


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def training_table() -> str:
    """Returns the table of measured and computed speeds; rounds are interleaved."""
    speeds: dict[int, list[Speed]] = {count: [] for count in PROCESSES}
    for _ in range(ROUNDS):
        for count in PROCESSES:
            speeds[count].append(measure(count))
            print(count, speeds[count][-1], flush=True)
    cpu = {count: median(speed.cpu_seconds for speed in speeds[count]) for count in PROCESSES}
    clock = {
        count: median(speed.tokens_per_second for speed in speeds[count]) for count in PROCESSES
    }
    rows = [
        [
            str(count),
            "measured",
            f"{cpu[count]:.2f}",
            f"{cpu[1] / cpu[count]:.2f}",
            f"{clock[count]:,.0f}",
        ]
        for count in PROCESSES
    ]
    ratio = cpu[1] / cpu[2]
    projected = {count: projected_speedup(count, ratio) for count in PROJECTED}
    rows += [
        [str(count), "computed", f"{cpu[1] / times:.2f}", f"{times:.2f}", ""]
        for count, times in projected.items()
    ]
    header = ["processes", "how", "CPU seconds of each process", "times one process"]
    return markdown_table([*header, "tokens per second by the clock"], rows, text=2)
