"""How two sides are compared: in one process, interleaved, several rounds, as a ratio."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

Work = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One comparison. ratio is the median over the rounds, spread its lowest and highest.

    goal: what must be reached; at_most: the goal is a ceiling, not a floor. note: the absolute
    figures, which mean something only beside the machine's sgemm rate.
    """

    name: str
    ratio: float
    spread: tuple[float, float]
    goal: float
    at_most: bool = False
    note: str = ""

    @property
    def met(self) -> bool:
        return self.ratio <= self.goal if self.at_most else self.ratio >= self.goal

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "spread": list(self.spread), "met": self.met}


def interleaved(
    sides: dict[str, Work],
    rounds: int,
    warm_up: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Returns the seconds of every side in every round.

    The sides take turns, so that other work on the machine slows all of them. clock: what tells
    the time; `time.process_time` leaves out the time in which other programs ran.
    """
    for _ in range(warm_up):
        for work in sides.values():
            work()
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, work in sides.items():
            began = clock()
            work()
            seconds[name].append(clock() - began)
    return seconds


def ratios(theirs: list[float], ours: list[float]) -> tuple[float, tuple[float, float]]:
    """Returns how many times faster ours is: the median of the rounds, and their range."""
    rounds = [a / b for a, b in zip(theirs, ours, strict=True)]
    return statistics.median(rounds), (min(rounds), max(rounds))


def sgemm_work(rows: int = 2048, inner: int = 1200, columns: int = 2400) -> tuple[Work, float]:
    """Returns a large multiplication of a shape as in the layers, and its operations."""
    a, b = torch.randn(rows, inner), torch.randn(inner, columns)
    out = torch.empty(rows, columns)
    return lambda: torch.mm(a, b, out=out), 2.0 * rows * inner * columns
