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
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from genpool.disk.atomic import atomic_file
from genpool.disk.files import is_file
from genpool.disk.lock import remove_lock
from genpool.errors import ConfigError, FolderError, GenpoolError, unknown_name
from genpool.reproduction.cells import Cell
from genpool.reproduction.definition import Experiment, Row
from genpool.reproduction.definitions import EXPERIMENTS, check_definitions
from genpool.reproduction.ledger import FAILED, Ledger
from genpool.reproduction.plan import Choice, Plan
from genpool.reproduction.runner import Runner
from genpool.reproduction.tasks import VECTORS
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
        about = self._read_about()
        found = about.get("scale")
        if scale is None and found is None:
            raise FolderError(
                f"{self.out} holds no reproduction; start one: genpool reproduce all --scale small "
                f"--data DATA --out {self.out}"
            )
        if scale is not None and found is not None and scale != found:
            raise FolderError(
                f"{self.out} holds a reproduction at --scale {found}; for {scale} choose another "
                "folder: --out."
            )
        self.scale = str(scale or found)
        place = data if data is not None else about.get("data")
        self.data = None if place is None else Path(place)
        self.ledger = Ledger(self.out / "cells.jsonl")
        self.plan = Plan(self.scale, self.ledger)

    def _read_about(self) -> dict[str, Any]:
        path = self.out / "about.json"
        if not is_file(path):
            return {}
        try:
            about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise FolderError(f"{path} is not JSON: {error}") from None
        return about

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

    def choices(self, experiment: Experiment, only: str | None = None) -> list[tuple[Row, Choice]]:
        """Returns for every row and task of an experiment its cell, or what it needs first."""
        tasks = list(dict.fromkeys(column.task for column in experiment.columns))
        choices: list[tuple[Row, Choice]] = []
        for row in experiment.rows:
            if only is not None and row.title != only:
                continue
            for task in tasks:
                if row.several_seeds:
                    found = self.plan.seeds(task, row.system, row.penalty)
                else:
                    found = [self.plan.row(task, row.system, row.penalty, row.overrides)]
                choices += [(row, choice) for choice in found]
        return choices

    def pending(self, experiments: Sequence[Experiment], only: str | None = None) -> list[Cell]:
        """Returns the cells that can be run now, each once, in the order of the experiments."""
        needed = [
            cell
            for experiment in experiments
            for _, choice in self.choices(experiment, only)
            for cell in choice.needed
        ]
        return list(dict.fromkeys(needed))

    def failures(self, experiments: Sequence[Experiment], only: str | None = None) -> list[str]:
        """Returns a line for every cell that a table needs and that has failed."""
        cells = {
            choice.cell.key: choice.cell
            for experiment in experiments
            for _, choice in self.choices(experiment, only)
            if choice.cell is not None
        }
        failed = {key: self.ledger.failed(key) for key in cells}
        return [f"{cells[key]}: {record.reason}" for key, record in failed.items() if record]

    def make_job(self, cell: Cell) -> dict[str, Any] | str:
        """Returns what a worker needs to know of a cell, or why it cannot be run."""
        task = self.plan.task(cell.task)
        vectors = VECTORS[self.scale]
        needs = [*task.needs, *([vectors] if vectors else [])]
        if needs and self.data is None:
            return f"needs the folder of the data: --data (with {', '.join(needs)})"
        base = self.data or Path()
        missing = [name for name in needs if not (base / name).exists()]
        if missing:
            return f"missing data: {', '.join(str(base / name) for name in missing)}"
        data = None if task.data is None else str(base / task.data)
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
        ConfigError: names, rows, recipes or settings that do not exist, all of them at once.
        FolderError: the folder holds a reproduction of another scale.
        TrainingError: another process is writing to the folder.
    """
    from genpool.reproduction.report import write_report

    chosen = _chosen(names)
    check_only(chosen.values(), only)
    reproduction = Reproduction(out, scale, data)
    check_definitions(chosen, scale, reproduction.ledger)
    reproduction.begin()
    experiments = list(chosen.values())

    def say(text: str) -> None:
        if show_progress:
            print(text, file=sys.stderr, flush=True)

    with run_lock(reproduction.out):
        # What another process has finished before it let go of the lock is read now.
        reproduction = Reproduction(out, scale, data)
        forget_failures(reproduction.ledger)
        runner = Runner(reproduction.ledger, jobs, reproduction.out, reproduction.make_job, say)
        runner.run(lambda: reproduction.pending(experiments, only))
        write_report(reproduction, sentence=sentence)
    remove_lock(reproduction.out)
    return reproduction.failures(experiments, only)


def forget_failures(ledger: Ledger) -> None:
    """Lets cells that failed in an earlier call be run again."""
    for record in ledger.records():
        if record.status == FAILED:
            ledger.retry(record.key)


def _chosen(names: Sequence[str]) -> dict[str, Experiment]:
    if ALL in names:
        return dict(EXPERIMENTS)
    unknown = [
        unknown_name("table or figure", name, [*EXPERIMENTS, ALL])
        for name in names
        if name not in EXPERIMENTS
    ]
    if unknown:
        raise ConfigError(unknown)
    return {name: EXPERIMENTS[name] for name in names}


def check_only(experiments: Sequence[Experiment] | Any, only: str | None) -> None:
    """Raises ConfigError where no experiment has a row of that title."""
    titles = list(dict.fromkeys(row.title for experiment in experiments for row in experiment.rows))
    if only is not None and only not in titles:
        raise ConfigError(unknown_name("row", only, titles))
