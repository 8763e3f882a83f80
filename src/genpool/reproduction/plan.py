"""Which cells a row of a table needs, given those that are finished.

A choice on the dev set decides which cells come next: first the learning rate of a task, then the
weight of each penalty, then the penalty. So a plan is asked again after every finished cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from genpool.reproduction.cells import Cell
from genpool.reproduction.ledger import Ledger, Record
from genpool.reproduction.systems import SYSTEMS
from genpool.reproduction.tasks import SEEDS, TASKS, WEIGHTS, Task
from genpool.saving.saved_model import PARTS

#: penalties of the paper's table 4
PENALTIES = ("parameter", "attention", "embedding")
#: a row's penalty: "none", one of PENALTIES with its weight chosen on dev, or the best of all
BEST, NONE = "best", "none"
#: systems by which the learning rate of a task is chosen, for all systems
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
        self.scale, self.ledger = scale, ledger
        self.asked: set[str] = set()

    def task(self, name: str) -> Task:
        return TASKS[self.scale][name]

    def row(
        self, task: str, system: str, penalty: str, extra: Sequence[str] = (), seed: int = 0
    ) -> Choice:
        """Returns the cell that a row shows for a task, or what has to be run first."""
        rate = self.learning_rate(task)
        if rate.needed:
            return rate
        overrides = (*_rate_override(rate.cell), *extra)
        if penalty == NONE:
            return self._finished(self.cell(task, system, overrides, seed))
        if penalty == BEST:
            chosen = self._best_penalty(task, system, overrides)
        else:
            chosen = self._best_weight(task, system, overrides, penalty)
        if chosen.cell is None or seed == 0:
            return chosen
        name, _, weight = chosen.cell.penalty.partition(" ")
        return self._finished(self.cell(task, system, overrides, seed, name, weight))

    def seeds(self, task: str, system: str, penalty: str) -> list[Choice]:
        """Returns the row's cell for every seed."""
        return [self.row(task, system, penalty, seed=seed) for seed in range(SEEDS[self.scale])]

    def learning_rate(self, task: str) -> Choice:
        """Returns a cell with the chosen learning rate, or the cells that choose it.

        The rate with the best mean dev accuracy of max pooling and generalized pooling without a
        penalty is used for all systems of the task.
        """
        source = self.task(task).rate_of or task
        rates = self.task(source).learning_rates
        if not rates:
            return Choice(None)
        cells = {
            rate: [
                self.cell(source, system, (f"training.learning_rate={rate}",), 0)
                for system in TUNED_ON
            ]
            for rate in rates
        }
        needed = self._missing(cell for tried in cells.values() for cell in tried)
        if needed:
            return Choice(None, needed)
        records = {rate: [self._record(cell) for cell in tried] for rate, tried in cells.items()}
        whole = {rate: done for rate, done in records.items() if None not in done}
        if not whole:  # every rate failed: the table says why
            return Choice(cells[rates[0]][0])
        best = max(whole, key=lambda rate: sum(record.dev for record in whole[rate] if record))
        return Choice(cells[best][0])

    def _best_penalty(self, task: str, system: str, overrides: tuple[str, ...]) -> Choice:
        none = self._finished(self.cell(task, system, overrides, 0))
        choices = [none] + [self._best_weight(task, system, overrides, name) for name in PENALTIES]
        return self._best(choices)

    def _best_weight(self, task: str, system: str, overrides: tuple[str, ...], name: str) -> Choice:
        cells = [
            self.cell(task, system, overrides, 0, name, weight) for weight in WEIGHTS[self.scale]
        ]
        first = self._finished(cells[0])
        if first.needed:
            return first
        record = self._record(cells[0])
        if record is not None and record.asleep:
            # Never active, so its gradient is zero: every other weight gives the same model.
            return first
        return self._best([self._finished(cell) for cell in cells])

    def _best(self, choices: Sequence[Choice]) -> Choice:
        needed = tuple(dict.fromkeys(cell for choice in choices for cell in choice.needed))
        if needed:
            return Choice(None, needed)
        cells = [choice.cell for choice in choices if choice.cell is not None]
        done = [cell for cell in cells if self._record(cell) is not None]
        # Of equal dev accuracies the first: no penalty before a penalty, a large weight first.
        best = max(done, key=lambda cell: self.ledger.done(cell.key).dev) if done else cells[0]  # type: ignore[union-attr]
        return Choice(best)

    def _finished(self, cell: Cell) -> Choice:
        return Choice(cell, self._missing([cell]))

    def _missing(self, cells: Iterable[Cell]) -> tuple[Cell, ...]:
        """Returns the cells that have neither a result nor a reason for having none."""
        return tuple(
            cell
            for cell in cells
            if self._record(cell) is None and self.ledger.failed(cell.key) is None
        )

    def _record(self, cell: Cell) -> Record | None:
        self.asked.add(cell.key)
        return self.ledger.done(cell.key)

    def cell(
        self,
        task: str,
        system: str,
        overrides: Sequence[str],
        seed: int,
        penalty: str = NONE,
        weight: str = "",
    ) -> Cell:
        """Returns one training run of a system on a task."""
        settings = self.task(task)
        changes = (*SYSTEMS[system].overrides(self.scale, settings.hidden), *overrides)
        if penalty != NONE:
            changes += (f"penalty.name={penalty}", f"penalty.weight={weight}")
        return Cell(
            self.scale,
            task,
            system,
            settings.recipe,
            (*_applicable(settings.overrides, changes), *changes),
            seed,
            NONE if penalty == NONE else f"{penalty} {weight}",
        )


def _applicable(overrides: Sequence[str], changes: Sequence[str]) -> tuple[str, ...]:
    """Returns the task's overrides without options that the system's own parts do not have."""
    kept = []
    for override in overrides:
        section, _, option = override.partition("=")[0].partition(".")
        names = [
            change.partition("=")[2] for change in changes if change.startswith(f"{section}.name=")
        ]
        if names and section in PARTS and option not in PARTS[section].options(names[-1]):
            continue
        kept.append(override)
    return tuple(kept)


def _rate_override(chosen: Cell | None) -> tuple[str, ...]:
    if chosen is None:
        return ()
    return tuple(
        override for override in chosen.overrides if override.startswith("training.learning_rate=")
    )[-1:]
