"""CPU seconds of starting beside `import torch`: an import, a model that is loaded, a command."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

from benchmarks.speed.harness import Row, interleaved, ratios

#: what Python is started with
STARTS = {
    "import": ("-c", "from genpool import SentenceEncoder"),
    "load": ("-c", "from genpool import SentenceEncoder; SentenceEncoder.from_pretrained()"),
    "similarity": ("-m", "genpool", "similarity", "A dog runs.", "An animal moves."),
}
TORCH = ("-c", "import torch")
GOAL = 1.3


def startup_rows(rounds: int) -> list[Row]:
    def start(arguments: tuple[str, ...]) -> None:
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)

    sides = {"torch": TORCH, **STARTS}
    seconds = interleaved(
        {name: lambda arguments=arguments: start(arguments) for name, arguments in sides.items()},  # type: ignore[misc]
        rounds,
        clock=children_seconds,
    )
    torch = statistics.median(seconds["torch"])
    rows = []
    for name in STARTS:
        ratio, spread = ratios(seconds[name], seconds["torch"])
        note = f"{statistics.median(seconds[name]):.2f} against {torch:.2f} CPU seconds"
        rows.append(Row(name, ratio, spread, GOAL, at_most=True, note=note))
    return rows


def children_seconds() -> float:
    """Returns the CPU seconds of all processes that this one started and that have ended."""
    times = os.times()
    return times.children_user + times.children_system
