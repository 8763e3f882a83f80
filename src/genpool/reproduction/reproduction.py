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
from collections.abc import Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict
from pathlib import Path
from typing import Any

from genpool.disk.atomic import write_text_file
from genpool.disk.files import is_file
from genpool.disk.folder_format import read_json
from genpool.disk.lock import held_folder, remove_lock
from genpool.errors import ConfigError, FolderError, GenpoolError, TrainingError, unknown_name
from genpool.reproduction.data_sets import PREPARE
from genpool.reproduction.definitions import EXPERIMENTS, SCALES, Experiment
from genpool.reproduction.ledger import DONE, FAILED, Cell, Ledger, Record
from genpool.reproduction.plan import Plan
from genpool.reproduction.workers import INTERRUPTED, Workers

ALL = "all"
#: marks a folder of data that is complete, and tokenized
TOKENIZED = "tokenized"
SHARED = """Tables share models. A penalty that turns out to be never active is trained once, \
which makes them fewer."""


class Reproduction:
    """The folder of a reproduction; its scale and data are those of an earlier call by default."""

    def __init__(
        self,
        out: str | Path,
        scale: str | None = None,
        data: str | Path | None = None,
        show_progress: bool = False,
    ) -> None:
        self.out, self.show_progress = Path(out), show_progress
        self.about = self.out / "about.json"
        about = read_json(self.about) if is_file(self.about) else {}
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
        place = data if data is not None else about.get("data")
        self.data = None if place is None else Path(place)
        self.ledger = Ledger(self.out / "cells.jsonl")
        self.plan = Plan(SCALES[str(scale or known)], self.ledger)

    def begin(self) -> None:
        """Makes the folder."""
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = error.strerror or error
            message = f"{self.out} cannot be created: {reason}. Give another folder: --out"
            raise FolderError(message) from error
        data = None if self.data is None else str(self.data)
        about = json.dumps({"scale": self.plan.scale.name, "data": data}, indent=2)
        write_text_file(self.about, about + "\n")

    def train(self, experiments: Sequence[Experiment], only: str | None, jobs: int) -> None:
        """Trains cells until none is pending; KeyboardInterrupt passes on to the workers."""
        running: dict[Future[dict[str, Any]], tuple[Cell, float]] = {}
        with Workers(jobs, self.out / "workers.log") as workers:
            while pending := self.plan.pending(experiments, only):
                busy = {cell.key for cell, _ in running.values()}
                for cell in (cell for cell in pending if cell.key not in busy):
                    if len(running) == jobs:
                        break
                    job = self.make_job(cell)
                    if isinstance(job, str):
                        self._fail(cell, job)
                        continue
                    self.say(f"started   {cell}")
                    running[workers.submit(job)] = cell, time.time()
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    self._enter(*running.pop(future), future.result())

    def _enter(self, cell: Cell, start: float, answer: dict[str, Any]) -> None:
        """Enters the answer of a worker, which has trained since `start`, into the ledger."""
        if answer["status"] == INTERRUPTED:
            raise KeyboardInterrupt
        if answer["status"] == FAILED:
            self._fail(cell, answer["reason"])
            return
        record = Record(**answer)
        self.ledger.add(record)
        scores = ", ".join(f"{name} {100 * score:.2f} %" for name, score in record.accuracy.items())
        self.say(f"finished  {cell}: {scores}, {time.time() - start:,.0f} s")

    def _fail(self, cell: Cell, reason: str) -> None:
        self.ledger.add(Record(cell.key, FAILED, reason, cell=asdict(cell)))
        self.say(f"failed    {cell}: {reason}")

    def say(self, text: str) -> None:
        if self.show_progress:
            print(text, file=sys.stderr, flush=True)

    def failures(self, experiments: Sequence[Experiment], only: str | None = None) -> list[str]:
        """Returns a line for every cell that a table needs and that has failed."""
        cells = {cell.key: cell for cell in self.plan.cells(experiments, only)}
        failed = self.ledger.with_status(FAILED)
        return [f"{cells[record.key]}: {record.reason}" for record in failed if record.key in cells]

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
        if task.prepare:
            folder, arguments = self.out / "data" / cell.task, dict(task.prepare)
            if not (folder / TOKENIZED).is_file():
                try:
                    PREPARE[arguments.pop("function")](base, folder, **arguments)
                    (folder / TOKENIZED).touch()
                except (GenpoolError, OSError) as error:
                    return f"the data could not be made: {error}"
            data = str(folder)
        return {
            "cell": asdict(cell),
            "data": data,
            "vectors": str(base / vectors) if vectors else None,
            "out": str(self.out),
        }

    def count_cells(self) -> tuple[int, int]:
        """Returns how many cells of the tables and figures are done, and how many there are."""
        left, needed = self.plan.left(EXPERIMENTS.values())
        done = sum(record.key in needed for record in self.ledger.with_status(DONE))
        return done, done + len(left)

    def status(self) -> str:
        """Returns what is done and left, and how long that may take, in a few lines."""
        done, failed = self.ledger.with_status(DONE), self.ledger.with_status(FAILED)
        lines = [f"scale {self.plan.scale.name}: {len(done)} models trained, {len(failed)} failed"]
        for record in failed:
            cell = record.cell
            lines.append(f"  failed   {cell['task']}: {cell['system']}: {record.reason}")
        times: dict[str, list[float]] = {}
        for record in done:
            for task in (str(record.cell["task"]), ALL):
                times.setdefault(task, []).append(record.seconds)

        def left_text(experiments: Collection[Experiment]) -> str:
            left, _ = self.plan.left(experiments)
            # A task without a finished cell is taken to be as long as the others.
            known = [times.get(cell.task, times.get(ALL, [0.0])) for cell in left]
            seconds = sum(map(statistics.mean, known))
            if seconds < 120:
                return f"{len(left)} models left" + (f", about {seconds:.0f} s" if seconds else "")
            minutes = seconds / 60
            about = f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
            return f"{len(left)} models left, about {about}"

        for name, experiment in EXPERIMENTS.items():
            lines.append(f"  {name:8} {left_text([experiment])}")
        lines.append(f"in all {left_text(EXPERIMENTS.values())} of one core")
        return "\n".join([*lines, SHARED])


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

    The arguments are the options of `genpool reproduce`. A cell that failed earlier is tried again.
    Nothing that is finished is run twice: a stop at any moment, also by `kill -9`, costs at most
    the work since the last checkpoint of a run. Returns a line for every cell that failed.
    """
    from genpool.reproduction.report import write_report

    experiments = _chosen(names, scale, only)
    reproduction = Reproduction(out, scale, data)
    reproduction.begin()
    with held_folder(reproduction.out, TrainingError):
        # What another process has finished before it let go of the lock is read now.
        reproduction = Reproduction(out, scale, data, show_progress)
        for record in reproduction.ledger.with_status(FAILED):
            del reproduction.ledger.records[record.key]
        reproduction.train(experiments, only, jobs)
        write_report(reproduction, sentence=sentence)
    remove_lock(reproduction.out)
    return reproduction.failures(experiments, only)


def _chosen(names: Sequence[str], scale: str, only: str | None) -> list[Experiment]:
    """Returns the named experiments; raises ConfigError with every name that does not exist."""
    known = [*EXPERIMENTS, ALL]
    problems = [unknown_name("table or figure", name, known) for name in names if name not in known]
    chosen_names = EXPERIMENTS if ALL in names else names
    chosen = [EXPERIMENTS[name] for name in chosen_names if name in EXPERIMENTS]
    titles = list(dict.fromkeys(row.title for experiment in chosen for row in experiment.rows))
    if only is not None and only not in titles:
        problems.append(unknown_name("row", only, titles))
    if scale not in SCALES:
        problems.append(unknown_name("scale", scale, SCALES))
    if problems:
        raise ConfigError(problems)
    return chosen
