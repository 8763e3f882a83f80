"""Workers that die at random: how much work is done twice, by the size of a shard.

Each worker takes the next shard from a queue. Its time to failure is exponential; when it dies, the
shard that it was working on is begun again by whoever is free next, and a new worker takes some
time to start. `python -m benchmarks.results_pages.scale_simulation` prints the table.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from benchmarks.pages import markdown_table

WORKERS, SEED, TRIALS = 64, 0, 20
#: seconds until a new worker has loaded its model
RESTART_SECONDS = 20.0
#: hours that a worker lives on average: a machine that may be taken away, and calmer ones
MEAN_HOURS = (1.0, 6.0, 24.0)
SHARD_ROWS = (10_000, 50_000, 250_000, 1_000_000)
#: the time of a shard differs by this share from the mean (one standard deviation)
SPREAD = 0.1


@dataclass(frozen=True)
class Simulated:
    """One simulated run.

    Attributes:
        seconds: until the last shard is done.
        repeated: seconds of work that were lost with dead workers.
        useful: seconds of work that are in the finished shards.
        deaths: how many workers died.
    """

    seconds: float
    repeated: float
    useful: float
    deaths: int


def simulate(
    shards: int, shard_seconds: float, mean_life: float, workers: int, seed: int
) -> Simulated:
    """Returns what happens in one run.

    Args:
        shards: how many there are.
        shard_seconds: the mean time that one takes.
        mean_life: seconds that a worker lives on average; infinite: no worker dies.
        workers: how many work at the same time.
        seed: decides the times of shards and deaths.
    """
    random = np.random.default_rng(seed)
    spread = random.normal(1.0, SPREAD, shards).clip(0.5, 1.5)
    waiting = deque((shard_seconds * spread).tolist())
    useful = float(sum(waiting))
    free = [(0.0, worker) for worker in range(workers)]  # (from when on, worker)
    dies = [_life(random, mean_life) for _ in range(workers)]
    repeated, last, deaths = 0.0, 0.0, 0
    while waiting:
        now, worker = heapq.heappop(free)
        if dies[worker] <= now:  # while it waited for work or started
            deaths += 1
            now = max(now, dies[worker]) + RESTART_SECONDS
            dies[worker] = now + _life(random, mean_life)
        duration = waiting.popleft()
        end = now + duration
        if dies[worker] < end:
            repeated += dies[worker] - now
            deaths += 1
            waiting.appendleft(duration)
            end = dies[worker] + RESTART_SECONDS
            dies[worker] = end + _life(random, mean_life)
        else:
            last = max(last, end)
        heapq.heappush(free, (end, worker))
    return Simulated(last, repeated, useful, deaths)


def _life(random: np.random.Generator, mean: float) -> float:
    return math.inf if math.isinf(mean) else float(random.exponential(mean))


def expected_repeated(shard_seconds: float, mean_life: float) -> float:
    """Returns the expected share of repeated work: e^x - 1 - x over x, x a shard in lives.

    A worker that starts a shard of s seconds dies before its end with probability 1 - e^(-s/m), and
    the attempts before the one that succeeds last m - s / (e^(s/m) - 1) seconds each on average.
    """
    x = shard_seconds / mean_life
    return (math.exp(x) - 1 - x) / x


def simulation_table(rows: int, rows_per_second: float) -> str:
    """Returns the table of repeated work for a corpus.

    Args:
        rows: of the corpus.
        rows_per_second: that one worker encodes.
    """
    table = []
    for shard_rows in SHARD_ROWS:
        seconds = shard_rows / rows_per_second
        cells = [f"{shard_rows:,}", f"{seconds / 60:.1f}"]
        for hours in MEAN_HOURS:
            runs = [
                simulate(-(-rows // shard_rows), seconds, 3600 * hours, WORKERS, SEED + trial)
                for trial in range(TRIALS)
            ]
            share = np.mean([run.repeated / run.useful for run in runs])
            calm = rows / rows_per_second / WORKERS
            longer = np.mean([run.seconds for run in runs]) / calm - 1
            deaths = np.mean([run.deaths for run in runs])
            theory = expected_repeated(seconds, 3600 * hours)
            cells.append(
                f"{100 * share:.2f} % ({100 * theory:.2f} %); {deaths:.0f} deaths, "
                f"{100 * longer:+.1f} % time"
            )
        table.append(cells)
    lives = [f"a worker lives {hours:g} h" for hours in MEAN_HOURS]
    return markdown_table(["rows per shard", "minutes per shard", *lives], table)


if __name__ == "__main__":
    print(simulation_table(100_000_000, 1000.0))
