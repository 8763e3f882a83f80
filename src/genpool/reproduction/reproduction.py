"""A reproduction: tables and figures of the paper at one scale, in one folder.

cells.jsonl     the ledger: one line for every finished cell
about.json      scale and place of the data
data/           data sets that were made for this scale
runs/           a run folder for every cell
report.md       tables, pictures, claims; report.html is the same as one page
figures/        the pictures
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from genpool.disk.atomic import atomic_file, is_running
from genpool.disk.files import is_file
from genpool.disk.lock import remove_lock
from genpool.errors import ConfigError, FolderError, GenpoolError, unknown_name
from genpool.reproduction.definitions import EXPERIMENTS, Experiment
from genpool.reproduction.ledger import DONE, Cell, Ledger
from genpool.reproduction.plan import Plan
from genpool.reproduction.runner import Runner
from genpool.reproduction.tasks import SCALES
from genpool.training.run_folder import run_lock

ALL = "all"
#: marks a folder of data that is complete, and tokenized
TOKENIZED = "tokenized"


class Reproduction:
    """The folder of a reproduction.

    Args:
        out: the folder; it is made where it is not there.
        scale: "paper", "small" or "tiny"; None: that of the folder.
        data: folder of the data sets; None: that of an earlier call, or none for "tiny".

    Raises:
        FolderError: the folder holds a reproduction of another scale.
    """

    def __init__(
        self, out: str | Path, scale: str | None = None, data: str | Path | None = None
    ) -> None:
        self.out = Path(out)
        about = _read_json(self.out / "about.json")
        known = about.get("scale")
        if scale is None and known is None:
            raise FolderError(
                f"{self.out} holds no reproduction; start one: genpool reproduce all --scale small "
                f"--data DATA --out {self.out}"
            )
        if scale is not None and known is not None and scale != known:
            raise FolderError(
                f"{self.out} holds a reproduction at --scale {known}; for {scale} choose another "
                "folder: --out."
            )
        self.scale = str(scale or known)
        place = data if data is not None else about.get("data")
        self.data = None if place is None else Path(place)
        self.ledger = Ledger(self.out / "cells.jsonl")
        self.plan = Plan(self.scale, self.ledger)

    def begin(self) -> None:
        """Makes the folder."""
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = error.strerror or error
            message = f"{self.out} cannot be created: {reason}. Give another folder: --out"
            raise FolderError(message) from error
        about = {"scale": self.scale, "data": None if self.data is None else str(self.data)}
        with atomic_file(self.out / "about.json") as temporary:
            temporary.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8", newline="\n")

    def failures(self, experiments: Sequence[Experiment], only: str | None = None) -> list[str]:
        """Returns a line for every cell that a table needs and that has failed."""
        choices = self.plan.choices(experiments, only)
        cells = {choice.cell.key: choice.cell for choice in choices if choice.cell is not None}
        failed = [record for record in self.ledger.failed() if record.key in cells]
        return [f"{cells[record.key]}: {record.reason}" for record in failed]

    def make_job(self, cell: Cell) -> dict[str, Any] | str:
        """Returns what a worker needs to know of a cell, or why it cannot be run."""
        task, vectors = self.plan.scale.tasks[cell.task], self.plan.scale.vectors
        needs = [*task.needs, *([vectors] if vectors else [])]
        if needs and self.data is None:
            return f"needs the folder of the data: --data (with {', '.join(needs)})"
        base = self.data or Path()
        missing = [name for name in needs if not (base / name).exists()]
        if missing:
            return f"missing data: {', '.join(str(base / name) for name in missing)}"
        data = str(base / task.needs[0]) if task.needs else None
        if task.prepare is not None:
            folder = self.out / "data" / cell.task
            if not (folder / TOKENIZED).is_file():
                try:
                    task.prepare(base, folder)
                    (folder / TOKENIZED).touch()
                except (GenpoolError, OSError) as error:
                    return f"the data could not be made: {error}"
            data = str(folder)
        return {
            "cell": asdict(cell),
            "key": cell.key,
            "data": data,
            "vectors": str(base / vectors) if vectors else None,
            "folder": str(self.out / "runs" / cell.folder),
            "root": str(self.out),
        }

    def count_cells(self) -> tuple[int, int]:
        """Returns how many cells are done, and how many there are, of all tables and figures.

        A cell that no table needs, such as one of a definition that has changed since, does not
        count.
        """
        left, needed = self.plan.left(list(EXPERIMENTS.values()))
        records = self.ledger.records.values()
        done = sum(record.status == DONE and record.key in needed for record in records)
        return done, done + len(left)

    def status(self) -> str:
        """Returns what is done, running and left, and how long that may take, in a few lines."""
        done = [record for record in self.ledger.records.values() if record.status == DONE]
        failed = self.ledger.failed()
        lines = [f"scale {self.scale}: {len(done)} models trained, {len(failed)} failed"]
        noted = _read_json(self.out / "running.json")
        running = noted["running"] if noted and is_running(int(noted["pid"])) else []
        for entry in running:
            minutes = (time.time() - entry["began"]) / 60
            lines.append(f"  running  {entry['cell']} ({minutes:.0f} min so far)")
        for record in failed:
            cell = record.cell
            lines.append(f"  failed   {cell['task']}: {cell['system']}: {record.reason}")
        times: dict[str, list[float]] = {}
        for record in done:
            for task in (str(record.cell["task"]), ALL):
                times.setdefault(task, []).append(record.seconds)

        def left_text(experiments: Sequence[Experiment]) -> str:
            left, _ = self.plan.left(experiments)
            # A task without a finished cell is taken to be as long as the others.
            known = [times.get(cell.task, times.get(ALL, [0.0])) for cell in left]
            return f"{len(left)} models left{_duration(sum(map(statistics.mean, known)))}"

        for name, experiment in EXPERIMENTS.items():
            lines.append(f"  {name:8} {left_text([experiment])}")
        everything = left_text(list(EXPERIMENTS.values()))
        lines.append(f"in all {everything} of one core, {max(1, len(running))} at a time")
        lines.append(
            "Tables share models. A penalty that turns out to be never active is trained once, "
            "which makes them fewer."
        )
        return "\n".join(lines)


def reproduce(
    names: Sequence[str],
    out: str | Path,
    scale: str,
    data: str | Path | None = None,
    jobs: int = 1,
    only: str | None = None,
    sentence: str | None = None,
    show_progress: bool = True,
) -> list[str]:
    """Runs every cell of the named tables and figures that is not finished, and writes the report.

    A cell that failed earlier is tried again. Nothing that is finished is run twice: a stop at any
    moment, also by `kill -9`, costs at most the work since the last checkpoint of a run.

    Args:
        names: of `EXPERIMENTS`, or "all".
        out: folder of the reproduction.
        scale: "paper", "small" or "tiny".
        data: folder of the data sets; not needed for "tiny".
        jobs: cells that are trained at once, each on one thread.
        only: title of a row; the others are left out.
        sentence: the sentence of figure 3; None: the paper's.
        show_progress: whether to print a line for every cell.

    Returns:
        A line for every cell that failed; empty where all is well.

    Raises:
        ConfigError: a table, figure, row or scale that does not exist.
        FolderError: the folder holds a reproduction of another scale.
        TrainingError: another process is writing to the folder.
    """
    from genpool.reproduction.report import write_report

    experiments = _chosen(names, scale, only)
    reproduction = Reproduction(out, scale, data)
    reproduction.begin()

    def say(text: str) -> None:
        if show_progress:
            print(text, file=sys.stderr, flush=True)

    with run_lock(reproduction.out):
        # What another process has finished before it let go of the lock is read now.
        reproduction = Reproduction(out, scale, data)
        for record in reproduction.ledger.failed():
            del reproduction.ledger.records[record.key]
        runner = Runner(reproduction.ledger, jobs, reproduction.out, reproduction.make_job, say)
        runner.run(lambda: reproduction.plan.pending(experiments, only))
        write_report(reproduction, sentence=sentence)
    remove_lock(reproduction.out)
    return reproduction.failures(experiments, only)


def _chosen(names: Sequence[str], scale: str, only: str | None) -> list[Experiment]:
    """Returns the named experiments; raises ConfigError with every name that does not exist."""
    known = [*EXPERIMENTS, ALL]
    problems = [unknown_name("table or figure", name, known) for name in names if name not in known]
    chosen = [
        EXPERIMENTS[name]
        for name in (EXPERIMENTS if ALL in names else names)
        if name in EXPERIMENTS
    ]
    titles = list(dict.fromkeys(row.title for experiment in chosen for row in experiment.rows))
    if only is not None and only not in titles:
        problems.append(unknown_name("row", only, titles))
    if scale not in SCALES:
        problems.append(unknown_name("scale", scale, SCALES))
    if problems:
        raise ConfigError(problems)
    return chosen


def _duration(seconds: float) -> str:
    if not seconds:
        return ""
    if seconds < 120:
        return f", about {seconds:.0f} s"
    if seconds < 5400:
        return f", about {seconds / 60:.0f} min"
    return f", about {seconds / 3600:.1f} h"


def _read_json(path: Path) -> dict[str, Any]:
    """Returns the content of a JSON file; nothing where there is none."""
    if not is_file(path):
        return {}
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FolderError(f"{path} is not JSON: {error}") from None
    return content
