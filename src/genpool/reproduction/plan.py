"""Which cells a row of a table needs, given those that are finished.

A choice on the dev set decides which cells come next: first the learning rate, then the weight of
each penalty, then the penalty. So a plan is asked again after every finished cell.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from genpool.reproduction.definitions import BEST, NONE, PENALTIES, SYSTEMS, Experiment, Row
from genpool.reproduction.ledger import DONE, Cell, Ledger, Record
from genpool.reproduction.tasks import SCALES
from genpool.saving.saved_model import PARTS

#: systems by which the learning rate is chosen, for all systems
TUNED_ON = ("max", "generalized")


@dataclass(frozen=True)
class Choice:
    """The outcome of a choice: the cell that was chosen, or the cells that are still needed."""

    cell: Cell | None
    needed: tuple[Cell, ...] = ()


class Plan:
    """Makes the cells of one scale.

    Attributes:
        asked: keys of all cells that a row has needed so far, finished or not.
    """

    def __init__(self, scale: str, ledger: Ledger) -> None:
        self.scale_name, self.scale, self.ledger = scale, SCALES[scale], ledger
        self.asked: set[str] = set()

    def choices(self, experiments: Iterable[Experiment], only: str | None = None) -> list[Choice]:
        """Returns for every row, task and seed its cell, or what it needs first.

        Args:
            experiments: tables and figures.
            only: title of a row; the others are left out. None (default): all rows.
        """
        return [
            choice
            for experiment in experiments
            for row in experiment.rows
            if only in (None, row.title)
            for task in dict.fromkeys(column.task for column in experiment.columns)
            for choice in self.seeds(row, task)
        ]

    def pending(self, experiments: Iterable[Experiment], only: str | None = None) -> list[Cell]:
        """Returns the cells that can be run now, each once, in the order of the experiments."""
        choices = self.choices(experiments, only)
        return list(dict.fromkeys(cell for choice in choices for cell in choice.needed))

    def seeds(self, row: Row, task: str) -> list[Choice]:
        """Returns the row's choice for every seed."""
        count = self.scale.seeds if row.several_seeds else 1
        return [self.choice(row, task, seed) for seed in range(count)]

    def choice(self, row: Row, task: str, seed: int = 0) -> Choice:
        """Returns the cell that a row shows for a task, or what has to be run first."""
        rate = self.learning_rate()
        if rate.needed:
            return rate
        setting = "training.learning_rate"
        chosen_rate = () if rate.cell is None else (f"{setting}={rate.cell.settings[setting]}",)
        overrides = (*chosen_rate, *row.overrides)
        if row.penalty == NONE:
            return self._finished(self.cell(task, row.system, overrides, seed))
        if row.penalty == BEST:
            none = self._finished(self.cell(task, row.system, overrides, 0))
            weights = [self._best_weight(task, row.system, overrides, name) for name in PENALTIES]
            chosen = self._best([none, *weights])
        else:
            chosen = self._best_weight(task, row.system, overrides, row.penalty)
        if chosen.cell is None or seed == 0:
            return chosen
        return self._finished(self.cell(task, row.system, overrides, seed, chosen.cell.penalty))

    def learning_rate(self) -> Choice:
        """Returns a cell with the chosen learning rate, or the cells that choose it.

        The rate with the best mean dev accuracy of max pooling and generalized pooling without a
        penalty on SNLI is used for all systems and tasks.
        """
        cells = {
            rate: [
                self.cell("snli", system, (f"training.learning_rate={rate}",), 0)
                for system in TUNED_ON
            ]
            for rate in self.scale.learning_rates
        }
        if not cells:
            return Choice(None)
        needed = self._missing(cell for tried in cells.values() for cell in tried)
        if needed:
            return Choice(None, needed)
        scores = {rate: [self._dev(cell) for cell in tried] for rate, tried in cells.items()}
        # Where every rate has failed, the first is taken: the table says why.
        best = max(scores, key=lambda rate: sum(scores[rate]))
        return Choice(cells[best][0])

    def _best_weight(self, task: str, system: str, overrides: Sequence[str], name: str) -> Choice:
        cells = [
            self.cell(task, system, overrides, 0, f"{name} {weight}")
            for weight in self.scale.weights
        ]
        first = self._finished(cells[0])
        record = self.ledger.done(cells[0])
        if first.needed or (record is not None and record.asleep):
            # Never active, so its gradient is zero: every other weight gives the same model.
            return first
        return self._best([self._finished(cell) for cell in cells])

    def _best(self, choices: Sequence[Choice]) -> Choice:
        needed = tuple(dict.fromkeys(cell for choice in choices for cell in choice.needed))
        if needed:
            return Choice(None, needed)
        cells = [choice.cell for choice in choices if choice.cell is not None]
        # Of equal dev accuracies the first: no penalty before a penalty, a large weight first.
        return Choice(max(cells, key=self._dev))

    def _finished(self, cell: Cell) -> Choice:
        return Choice(cell, self._missing([cell]))

    def _missing(self, cells: Iterable[Cell]) -> tuple[Cell, ...]:
        """Returns the cells that have neither a result nor a reason for having none."""
        cells = list(cells)
        self.asked.update(cell.key for cell in cells)
        return tuple(cell for cell in cells if cell.key not in self.ledger.records)

    def _dev(self, cell: Cell) -> float:
        """Returns the dev accuracy of a cell; one that failed is worse than any other."""
        record = self.ledger.done(cell)
        return float("-inf") if record is None else record.dev

    def cell(
        self, task: str, system: str, overrides: Sequence[str], seed: int, penalty: str = NONE
    ) -> Cell:
        """Returns one training run of a system on a task, with a penalty such as "attention 1"."""
        settings = self.scale.tasks[task]
        changes = (*SYSTEMS[system].overrides_at(self.scale_name, self.scale.width), *overrides)
        if penalty != NONE:
            name, weight = penalty.split()
            changes += (f"penalty.name={name}", f"penalty.weight={weight}")
        kept = _applicable(settings.overrides, changes)
        recipe, overrides = settings.recipe, (*kept, *changes)
        return Cell(self.scale_name, task, system, recipe, overrides, seed, penalty)

    def left(self, experiments: Sequence[Experiment]) -> tuple[list[Cell], set[str]]:
        """Returns the cells that are left, and the keys of all that are needed, finished or not.

        Which cells are left depends on choices that are not made yet, but not how many: every
        choice is made as if what is left had the accuracy 0. A penalty counts as inactive where it
        was in another cell: it is trained with one weight then, otherwise with all of them.
        """
        ledger = copy.copy(self.ledger)
        ledger.records = dict(ledger.records)
        inactive = {
            record.cell["penalty"].split()[0] for record in ledger.records.values() if record.asleep
        }
        plan = Plan(self.scale_name, ledger)
        left: dict[str, Cell] = {}  # by key: two systems of a table can be one model at small scale
        while pending := plan.pending(experiments):
            for cell in pending:
                left[cell.key] = cell
                asleep = cell.penalty.split()[0] in inactive
                record = Record(cell.key, DONE, accuracy={"dev": 0.0}, asleep=asleep)
                ledger.records[cell.key] = record
        return list(left.values()), plan.asked


def _applicable(overrides: Sequence[str], changes: Sequence[str]) -> tuple[str, ...]:
    """Returns the task's overrides without options that the system's own parts do not have."""
    kept = []
    for override in overrides:
        section, _, option = override.partition("=")[0].partition(".")
        start = f"{section}.name="
        names = [change.removeprefix(start) for change in changes if change.startswith(start)]
        if not (names and section in PARTS and option not in PARTS[section].options(names[-1])):
            kept.append(override)
    return tuple(kept)
