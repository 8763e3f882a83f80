"""How far a reproduction is: what is done, running and left, and how long that may take."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from typing import Any

from genpool.disk.atomic import is_running
from genpool.reproduction.cells import Cell
from genpool.reproduction.definition import Experiment
from genpool.reproduction.definitions import EXPERIMENTS
from genpool.reproduction.ledger import DONE, FAILED, Record
from genpool.reproduction.reproduction import Reproduction


def count_cells(reproduction: Reproduction) -> tuple[int, int]:
    """Returns how many cells are done, and how many there are, of all tables and figures.

    A cell that no table needs, such as one of a definition that has changed since, is not counted.
    """
    imagined, left = _imagine_finished(reproduction, list(EXPERIMENTS.values()))
    done = sum(reproduction.ledger.done(key) is not None for key in imagined.plan.asked)
    return done, done + len(left)


def cells_left(reproduction: Reproduction, experiments: Sequence[Experiment]) -> list[Cell]:
    """Returns the cells that are left, also those that depend on a choice which is not made yet."""
    return _imagine_finished(reproduction, experiments)[1]


def _imagine_finished(
    reproduction: Reproduction, experiments: Sequence[Experiment]
) -> tuple[Reproduction, list[Cell]]:
    """Returns the reproduction as if it were finished, and the cells that are left for that.

    Which cells they are depends on the choices, but not how many: every choice is made as if what
    is left had the accuracy 0. A penalty counts as asleep where it was in another cell: it is
    trained with one weight then, otherwise with all of them.
    """
    imagined = Reproduction(reproduction.out, reproduction.scale)
    records = imagined.ledger.records()
    asleep = {_penalty_name(record.cell["penalty"]) for record in records if record.asleep}
    left: dict[str, Cell] = {}  # by key: two systems of a table can be one model at a small scale
    while pending := imagined.pending(experiments):
        for cell in pending:
            left[cell.key] = cell
            sleeps = _penalty_name(cell.penalty) in asleep
            imagined.ledger.assume(Record(cell.key, DONE, accuracy={"dev": 0.0}, asleep=sleeps))
    return imagined, list(left.values())


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

    def left_text(experiments: Sequence[Experiment]) -> str:
        left = cells_left(reproduction, experiments)
        total = sum(seconds.get(cell.task, seconds[""]) for cell in left) if seconds else 0.0
        return f"{len(left)} models left{_duration(total)}"

    for name, experiment in EXPERIMENTS.items():
        lines.append(f"  {name:8} {left_text([experiment])}")
    jobs = max(1, len(running["running"]))
    everything = left_text(list(EXPERIMENTS.values()))
    lines.append(f"in all {everything} of one core, {jobs} at a time")
    lines.append(
        "Tables share models. A penalty that turns out to be never active is trained once, which "
        "makes them fewer."
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


def _penalty_name(penalty: str) -> str:
    """Returns the name of a cell's penalty, without its weight."""
    return penalty.partition(" ")[0]


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
