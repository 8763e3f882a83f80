"""How far a reproduction is: what is done, running and left, and how long that may take."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from typing import Any

from genpool.disk.temporary import is_running
from genpool.experiments.cells import Cell
from genpool.experiments.definition import Experiment
from genpool.experiments.definitions import EXPERIMENTS
from genpool.experiments.ledger import DONE, FAILED
from genpool.experiments.reproduction import Reproduction


def count_cells(reproduction: Reproduction) -> tuple[int, int]:
    """Returns how many cells are done, and how many are known to be needed in all.

    Choices on a dev set decide which cells come next, so that more may become known.
    """
    done = sum(record.status == DONE for record in reproduction.ledger.records())
    return done, done + len(_left(reproduction, list(EXPERIMENTS.values())))


def status_text(reproduction: Reproduction) -> str:
    """Returns a few lines for people."""
    records = reproduction.ledger.records()
    done = [record for record in records if record.status == DONE]
    failed = [record for record in records if record.status == FAILED]
    lines = [f"scale {reproduction.scale}: {len(done)} models trained, {len(failed)} failed"]
    running = _running(reproduction)
    for entry in running["running"]:
        minutes = (time.time() - entry["began"]) / 60
        lines.append(f"  running  {entry['cell']} ({minutes:.0f} min so far)")
    for record in failed:
        cell = record.cell
        lines.append(f"  failed   {cell['task']}: {cell['system']}: {record.reason}")
    seconds = _seconds_by_task(reproduction)
    total = 0.0
    for name, experiment in EXPERIMENTS.items():
        left = _left(reproduction, [experiment])
        total_of = sum(seconds.get(cell.task, seconds[""]) for cell in left) if seconds else 0.0
        lines.append(f"  {name:8} {len(left)} models left" + _duration(total_of))
    left = _left(reproduction, list(EXPERIMENTS.values()))
    if seconds:
        total = sum(seconds.get(cell.task, seconds[""]) for cell in left)
    jobs = max(1, len(running["running"]))
    lines.append(f"in all {len(left)} models left{_duration(total)} of one core, {jobs} at a time")
    lines.append(
        "Tables share models. Choices on the dev sets may add some; a penalty that is never active "
        "is trained once."
    )
    return "\n".join(lines)


def _duration(seconds: float) -> str:
    if not seconds:
        return ""
    if seconds < 120:
        return f", about {seconds:.0f} s"
    if seconds < 5400:
        return f", about {seconds / 60:.0f} min"
    return f", about {seconds / 3600:.1f} h"


def _left(reproduction: Reproduction, experiments: Sequence[Experiment]) -> list[Cell]:
    return reproduction.pending(experiments)


def _seconds_by_task(reproduction: Reproduction) -> dict[str, float]:
    """Returns the mean training time of a task's cells, and under "" that of all cells."""
    times: dict[str, list[float]] = {}
    for record in reproduction.ledger.records():
        if record.status == DONE:
            times.setdefault(str(record.cell["task"]), []).append(record.seconds)
            times.setdefault("", []).append(record.seconds)
    return {task: statistics.mean(seconds) for task, seconds in times.items()}


def _running(reproduction: Reproduction) -> dict[str, Any]:
    path = reproduction.out / "running.json"
    empty: dict[str, Any] = {"running": []}
    if not path.is_file():
        return empty
    running: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return running if is_running(int(running["pid"])) else empty
