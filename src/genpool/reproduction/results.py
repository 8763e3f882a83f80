"""What a reproduction has measured so far: the record behind every cell of a table, and tests."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from genpool.evaluation.significance import compare_correct, paired_p_value
from genpool.reproduction.definition import Column, Experiment, Row
from genpool.reproduction.definitions import EXPERIMENTS
from genpool.reproduction.ledger import Record
from genpool.reproduction.plan import Choice
from genpool.reproduction.reproduction import Reproduction


@dataclass(frozen=True)
class Difference:
    """How much one row is ahead of another in a column.

    Where both rows have several seeds, points and p-value are of all of them: a row of the test set
    counts by the share of the seeds that are right. Otherwise they are of seed 0.

    Attributes:
        points: difference of the accuracies in points.
        p_value: of the one-tailed paired t-test over the rows of the test set.
        mcnemar_p_value: of McNemar's exact test, two-sided; always of seed 0, because the test
            knows only right and wrong.
        spread: standard deviation of a difference between single runs with different seeds, in
            points; None where one of the rows has one seed.
    """

    points: float
    p_value: float
    mcnemar_p_value: float
    spread: float | None


class Results:
    """The records of a reproduction, by table, row and column."""

    def __init__(self, reproduction: Reproduction) -> None:
        self.reproduction, self.plan = reproduction, reproduction.plan
        self.ledger = reproduction.ledger

    def record(self, row: Row, column: Column) -> Record | None:
        """Returns the record that a row shows in a column, or None while there is none."""
        return self._of(self._choice(row, column))

    def seeds(self, row: Row, column: Column) -> list[Record]:
        """Returns the records of all seeds of a row that are finished."""
        if not row.several_seeds:
            record = self.record(row, column)
            return [record] if record else []
        choices = self.plan.seeds(column.task, row.system, row.penalty)
        return [record for choice in choices if (record := self._of(choice)) is not None]

    def failure(self, row: Row, column: Column) -> str | None:
        """Returns why a cell has no result: its reason, or None where it has not been run."""
        choice = self._choice(row, column)
        if choice.cell is None:
            return None
        record = self.ledger.failed(choice.cell.key)
        return record.reason if record else None

    def split(self, column: Column) -> str:
        """Returns the name of the split behind a column, in the files of predictions."""
        return self.plan.task(column.task).splits[column.split]

    def accuracy(self, record: Record, column: Column) -> float:
        return record.accuracy[self.split(column)]

    def difference(self, first: Row, second: Row, column: Column) -> Difference | None:
        """Returns how much the first row is ahead, or None while one of the two is missing."""
        one, other = self.record(first, column), self.record(second, column)
        if one is None or other is None:
            return None
        split = self.split(column)
        mcnemar = compare_correct(_right([one], split), _right([other], split)).mcnemar_p_value
        ours, theirs = self.seeds(first, column), self.seeds(second, column)
        spread = None
        if min(len(ours), len(theirs)) < 2:
            ours, theirs = [one], [other]
        else:
            spread = sum(self._variance(side, column) for side in (ours, theirs)) ** 0.5
        right, right_of_other = _right(ours, split), _right(theirs, split)
        points = 100 * float(right.mean() - right_of_other.mean())
        return Difference(points, paired_p_value(right, right_of_other), mcnemar, spread)

    def _variance(self, seeds: Sequence[Record], column: Column) -> float:
        """Returns the variance of the accuracies, which are in points."""
        return statistics.variance(100 * self.accuracy(record, column) for record in seeds)

    def _choice(self, row: Row, column: Column) -> Choice:
        return self.plan.row(column.task, row.system, row.penalty, row.overrides)

    def _of(self, choice: Choice) -> Record | None:
        if choice.cell is None or choice.needed:
            return None
        return self.ledger.done(choice.cell.key)


def _right(records: Sequence[Record], split: str) -> NDArray[np.float64]:
    """Returns the share of the models that are right, for every row of a test split, (rows,)."""
    right: NDArray[np.float64] = np.mean([record.correct_rows(split) for record in records], axis=0)
    return right


def find(experiment: str, title: str) -> Row:
    """Returns a row of a table by its title."""
    return next(row for row in EXPERIMENTS[experiment].rows if row.title == title)


def column_of(experiment: Experiment | str, title: str) -> Column:
    """Returns a column of a table by its title."""
    table = EXPERIMENTS[experiment] if isinstance(experiment, str) else experiment
    return next(column for column in table.columns if column.title == title)
