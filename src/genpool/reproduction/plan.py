"""Which cell each row of a table shows, given those that are finished.

A choice on the dev set decides which cells come next: first the learning rate, then the weight of
each penalty, then the penalty. So a plan is asked again after every finished cell.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from genpool.reproduction import definitions
from genpool.reproduction.definitions import BEST, NONE, Column, Experiment, Row, Scale
from genpool.reproduction.ledger import DONE, Cell, Ledger, Record
from genpool.saving.saved_model import PARTS


class Plan:
    """The cells of one scale, and the records of those that are finished."""

    def __init__(self, scale: Scale, ledger: Ledger) -> None:
        self.scale, self.ledger = scale, ledger
        #: all cells that rows have asked for since the last call of `pending`, by key
        self.asked: dict[str, Cell] = {}

    def cells(self, experiments: Iterable[Experiment], only: str | None = None) -> list[Cell]:
        """Returns the cells that rows (or one, by its title) show, as far as they are chosen."""
        return [
            cell
            for experiment in experiments
            for row in experiment.rows
            if only in (None, row.title)
            for task in dict.fromkeys(column.task for column in experiment.columns)
            for cell in self.seeds(row, task)
        ]

    def pending(self, experiments: Iterable[Experiment], only: str | None = None) -> list[Cell]:
        """Returns the cells that can be run now, each once, in the order of the experiments."""
        self.asked = {}
        self.cells(experiments, only)
        return [cell for key, cell in self.asked.items() if key not in self.ledger.records]

    def left(self, experiments: Collection[Experiment]) -> tuple[list[Cell], set[str]]:
        """Returns the cells that are left, and the keys of all that are needed, finished or not.

        Which cells are left depends on choices that are not made yet, but not how many: every
        choice is made as if what is left had the accuracy 0. A penalty counts as inactive where it
        was in another cell: it is trained with one weight then, otherwise with all of them.
        """
        plan = Plan(self.scale, copy.copy(self.ledger))
        records = plan.ledger.records = dict(self.ledger.records)
        inactive = {
            record.cell["penalty"].split()[0] for record in records.values() if record.inactive
        }
        left = []
        while pending := plan.pending(experiments):
            left += pending
            for cell in pending:
                is_inactive = cell.penalty.split()[0] in inactive
                dev = {"dev": 0.0}
                records[cell.key] = Record(cell.key, DONE, accuracy=dev, inactive=is_inactive)
        return left, set(plan.asked)

    def seeds(self, row: Row, task: str) -> list[Cell]:
        """Returns the row's cells with all seeds, as far as they are chosen."""
        count = self.scale.seeds if row.several_seeds else 1
        cells = [self.cell_of(row, task, seed) for seed in range(count)]
        return [cell for cell in cells if cell is not None]

    def cell_of(self, row: Row, task: str, seed: int = 0) -> Cell | None:
        """Returns the cell that a row shows for a task; None while it is not chosen."""
        rate = self.learning_rate()
        if rate is None:
            return None
        overrides, penalty = (*rate, *row.overrides), NONE
        if row.penalty != NONE:
            chosen = self.best(*([cell] for cell in self._penalties(task, row, overrides)))
            if chosen is None:
                return None
            penalty = chosen[0].penalty
        cell = self.cell(task, row.system, overrides, seed, penalty)
        self.is_trained(cell)
        return cell

    def learning_rate(self) -> tuple[str, ...] | None:
        """Returns the setting of the learning rate; None while it is not chosen, () without any."""
        rates = [(f"training.learning_rate={rate}",) for rate in self.scale.learning_rates]
        if not rates:
            return ()
        groups = [
            [self.cell("snli", system, rate, 0) for system in definitions.TUNED_ON]
            for rate in rates
        ]
        best = self.best(*groups)
        return None if best is None else rates[groups.index(best)]

    def _penalties(self, task: str, row: Row, overrides: Sequence[str]) -> list[Cell]:
        """Returns the cells among which the penalty of a row is chosen."""
        names = definitions.PENALTIES if row.penalty == BEST else (row.penalty,)
        cells = [self.cell(task, row.system, overrides, 0)] if row.penalty == BEST else []
        for name in names:
            first, *others = (
                self.cell(task, row.system, overrides, 0, f"{name} {weight}")
                for weight in self.scale.weights
            )
            cells.append(first)
            record = self.ledger.records.get(first.key)
            # Where it is never active, its gradient is zero: other weights give the same model.
            if record is not None and not record.inactive:
                cells += others
        return cells

    def best(self, *groups: list[Cell]) -> list[Cell] | None:
        """Returns the first group with the best mean dev accuracy; None while it is not known."""
        if False in {self.is_trained(cell) for cell in chain(*groups)}:  # every cell is asked for
            return None

        def dev(cell: Cell) -> float:
            record = self.ledger.done(cell)  # None: it failed, and is worse than any other
            return float("-inf") if record is None else record.dev

        return max(groups, key=lambda cells: sum(map(dev, cells)))

    def is_trained(self, cell: Cell) -> bool:
        """Returns whether a cell has a result, or a reason for having none; it is asked for."""
        self.asked[cell.key] = cell
        return cell.key in self.ledger.records

    def cell(
        self, task: str, system: str, overrides: Sequence[str], seed: int, penalty: str = NONE
    ) -> Cell:
        """Returns one training run of a system on a task, with a penalty such as "attention 1"."""
        settings = self.scale.tasks[task]
        changes = (*definitions.SYSTEMS[system].overrides_at(self.scale), *overrides)
        if penalty != NONE:
            name, weight = penalty.split()
            changes += (f"penalty.name={name}", f"penalty.weight={weight}")
        overrides = (*_applicable(settings.overrides, changes), *changes)
        return Cell(self.scale.name, task, system, settings.recipe, overrides, seed, penalty)

    def record(self, row: Row, column: Column) -> Record | None:
        """Returns the finished record that a row shows in a column, or None while there is none."""
        record = self.entry(row, column)
        return record if record is not None and record.status == DONE else None

    def entry(self, row: Row, column: Column) -> Record | None:
        """Returns the record that a row shows in a column, finished or failed."""
        cell = self.cell_of(row, column.task)
        return None if cell is None else self.ledger.records.get(cell.key)

    def records(self, row: Row, column: Column) -> list[Record]:
        """Returns the records of all seeds of a row that are finished."""
        records = map(self.ledger.done, self.seeds(row, column.task))
        return [record for record in records if record is not None]

    def split(self, column: Column) -> str:
        """Returns the name of the split behind a column, in the files of predictions."""
        return self.scale.tasks[column.task].splits[column.split]


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
