"""Training runs that are killed: they go on to the same weights, and say what happened.

Run with `python -m benchmarks.faults.training_kills [COUNT]`: one run is killed at COUNT random
moments (20), then one of two processes is killed, the first and the second.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import psutil

from tests.helpers.training_runs import SMALL_RULES, outcome, sets, start, weights

COUNT, SEED = 20, 0
TORCHRUN = ("-m", "torch.distributed.run", "--nproc_per_node", "2", "--standalone")
OVERRIDES = (
    *SMALL_RULES,
    "reader.sizes=[96, 48, 24]",
    "training.batch_size=8",
    "training.epochs=8",
    "training.halvings=8",
    "training.seed=5",
    "training.learning_rate=0.02",
    "training.save_minutes=0",  # a checkpoint after every step
    "penalty.name=parameter",
)
LAST_STEP = 96
LOST = "another of the 2 processes of this run ended"


class LostProcess(NamedTuple):
    """What the other process did when one of two was killed.

    Attributes:
        seconds: until both had ended.
        said: what was printed.
        same: whether the continued run has the weights that are expected, if any are.
    """

    seconds: float
    said: str
    same: bool


def begin(out: Path, launcher: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Starts the run, with --resume where it has a checkpoint; two processes for two epochs."""
    resume = ["--resume"] if newest_step(out) >= 0 else []
    epochs = ["training.epochs=2"] if launcher else []
    overrides = sets([*OVERRIDES, *epochs])
    return start("train", "rules", "--out", out, *overrides, *resume, launcher=launcher)


def newest_step(out: Path) -> int:
    """Returns the step of the newest checkpoint, -1 without one."""
    names = [path.stem for path in (out / "checkpoints").glob("step-*")]
    return max((int(name.removeprefix("step-")) for name in names), default=-1)


def wait_until(process: subprocess.Popen[str], happened: Callable[[], bool]) -> None:
    """Waits for something, or for the end of the process."""
    while process.poll() is None and not happened():
        time.sleep(0.005)


def finish(out: Path, launcher: tuple[str, ...] = ()) -> str:
    """Runs to the end; returns what was printed."""
    process = begin(out, launcher)
    said, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(said)
    return said


def kill_at_random(out: Path, count: int) -> dict[str, Any]:
    """Kills a run at `count` random moments, then lets it finish; returns what it ends with."""
    chance = random.Random(SEED)
    steps = sorted(chance.randrange(LAST_STEP - 5) for _ in range(count))
    for step in steps:
        process = begin(out)
        # One in five is killed while it starts, all others somewhere behind a step.
        starting = chance.random() < 0.2
        wait_until(process, lambda: starting or newest_step(out) >= step)  # noqa: B023
        time.sleep(chance.uniform(0, 1.0 if starting else 0.05))
        process.kill()
        process.communicate()
        if process.returncode != -signal.SIGKILL:
            raise RuntimeError(f"the run ended before it was killed: {process.returncode}")
    finish(out)
    return outcome(out)


def kill_one_of_two(out: Path, rank: int, expected: bytes | None, step: int = 14) -> LostProcess:
    """Kills one of two processes behind a step, then lets the run finish."""
    process = begin(out, TORCHRUN)
    wait_until(process, lambda: newest_step(out) >= step)
    children = psutil.Process(process.pid).children(recursive=True)
    victim = next(child for child in children if child.environ().get("RANK") == str(rank))
    began = time.monotonic()
    os.kill(victim.pid, signal.SIGKILL)
    said, _ = process.communicate()
    seconds = time.monotonic() - began
    finish(out, TORCHRUN)
    return LostProcess(seconds, said, expected in (None, weights(out)))


def main() -> None:
    """Prints what happened; the exit code is 1 if something must not."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    with TemporaryDirectory() as folder:
        place = Path(folder)
        finish(place / "undisturbed")
        same = kill_at_random(place / "killed", count) == outcome(place / "undisturbed")
        print(f"killed {count} times; same bytes as undisturbed: {same}", flush=True)
        finish(place / "two", TORCHRUN)
        expected = weights(place / "two")
        for rank in (0, 1):
            lost = kill_one_of_two(place / f"lost-{rank}", rank, expected)
            clear = LOST in lost.said
            print(
                f"process {rank} of two killed: the other ended after {lost.seconds:.1f} s, "
                f"in words: {clear}, resumed to the same weights: {lost.same}",
                flush=True,
            )
            same &= clear and lost.same and lost.seconds < 60
    sys.exit(not same)


if __name__ == "__main__":
    main()
