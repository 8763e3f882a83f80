"""From the ledger to verdicts on "this row is better than that one".

A difference is a finding when it is significant over the rows of the test set (one-tailed paired
t-test, p < 0.05) and, where several seeds were trained, larger than the spread over seeds. A lead
on the dev set (figure 2) is one when it is larger than half the 95 % interval of one accuracy.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from genpool.evaluation.significance import compare_correct, paired_p_value
from genpool.reproduction.definitions import EXPERIMENTS, FAMILIES, NONE, Column, Row
from genpool.reproduction.ledger import Record
from genpool.reproduction.plan import Choice
from genpool.reproduction.reproduction import Reproduction

HOLDS, FAILS, OPEN = "holds", "does not hold", "not decidable at this scale"
MISSING = "not measured"
SIGNIFICANT = 0.05
#: how many times as large one of two distances must be where there is one model each
CLEAR_RATIO = 2.0
#: the name under which a run's metrics hold the mean distance between the attention of heads
ATTENTION_DISTANCE = "heads_attention_distance_mean"


@dataclass(frozen=True)
class Difference:
    """How much one row is ahead of another in a column.

    Where both rows have several seeds, points and p-value are of all of them: a row of the test set
    counts by the share of the seeds that are right. Otherwise they are of seed 0. McNemar's test
    knows only right and wrong, and is always of seed 0.
    """

    points: float
    p_value: float  # of the one-tailed paired t-test over the rows of the test set
    mcnemar_p_value: float  # of the exact test, two-sided
    spread: float | None  # in points: the deviation of a difference between runs of two seeds

    @property
    def verdict(self) -> str:
        """The verdict on "the first is better than the second"."""
        if self.spread is not None and abs(self.points) <= self.spread:
            return OPEN
        if self.points > 0 and self.p_value < SIGNIFICANT:
            return HOLDS
        if self.points < 0 and self.p_value > 1 - SIGNIFICANT:
            return FAILS
        return OPEN

    def __str__(self) -> str:
        spread = "" if self.spread is None else f", spread over seeds {self.spread:.2f}"
        return f"{self.points:+.2f} points (p = {self.p_value:.2g}{spread})"


class Results:
    """The records of a reproduction, by row and column."""

    def __init__(self, reproduction: Reproduction) -> None:
        self.reproduction, self.plan = reproduction, reproduction.plan
        self.ledger = reproduction.ledger

    def record(self, row: Row, column: Column) -> Record | None:
        """Returns the record that a row shows in a column, or None while there is none."""
        return self._of(self.plan.choice(row, column.task))

    def seeds(self, row: Row, column: Column) -> list[Record]:
        """Returns the records of all seeds of a row that are finished."""
        choices = self.plan.seeds(row, column.task)
        return [record for choice in choices if (record := self._of(choice)) is not None]

    def has_failed(self, row: Row, column: Column) -> bool:
        """Returns whether the cell that a row shows in a column was run and has no result."""
        choice = self.plan.choice(row, column.task)
        return choice.cell is not None and not choice.needed and self._of(choice) is None

    def split(self, column: Column) -> str:
        """Returns the name of the split behind a column, in the files of predictions."""
        return self.plan.scale.tasks[column.task].splits[column.split]

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
            accuracies = [[100 * seed.accuracy[split] for seed in side] for side in (ours, theirs)]
            spread = sum(map(statistics.variance, accuracies)) ** 0.5
        right, right_of_other = _right(ours, split), _right(theirs, split)
        points = 100 * float(right.mean() - right_of_other.mean())
        return Difference(points, paired_p_value(right, right_of_other), mcnemar, spread)

    def _of(self, choice: Choice) -> Record | None:
        return None if choice.cell is None else self.ledger.done(choice.cell)


def _right(records: Sequence[Record], split: str) -> NDArray[np.float64]:
    """Returns the share of the models that are right, for every row of a test split, (rows,)."""
    right: NDArray[np.float64] = np.mean([record.correct_rows(split) for record in records], axis=0)
    return right


@dataclass(frozen=True)
class Answer:
    """What was measured, and the verdict."""

    measured: str
    verdict: str


#: how a claim is answered
Answering = Callable[[Results], Answer]
NOT_MEASURED = Answer("not measured", MISSING)


def together(verdicts: Sequence[str]) -> str:
    """Returns the verdict on a claim of several parts: as weak as its weakest part."""
    return next(verdict for verdict in (MISSING, FAILS, OPEN, HOLDS) if verdict in verdicts)


def better(table: str, columns: str | Sequence[str], first: str, *others: str) -> Answering:
    """Answers "the first row is better than every other one", in all the columns."""
    titles = [columns] if isinstance(columns, str) else columns
    experiment = EXPERIMENTS[table]

    def answer(results: Results) -> Answer:
        parts, verdicts = [], []
        for title in titles:
            column, row = experiment.column(title), experiment.row(first)
            compared = [_compare(results, row, experiment.row(other), column) for other in others]
            where = f"{title}: " if len(titles) > 1 else ""
            parts.append(where + "; ".join(part.measured for part in compared))
            verdicts += [part.verdict for part in compared]
        return Answer("; ".join(parts), together(verdicts))

    return answer


def _compare(results: Results, first: Row, second: Row, column: Column) -> Answer:
    record, title = results.record(first, column), second.short_title
    same_system = first.system == second.system
    if record is not None and record.asleep and same_system and second.penalty == NONE:
        # No step had a gradient of the penalty: nothing could be better, at any number of rows.
        return Answer(f"the same model as {title}: the penalty is inactive", FAILS)
    difference = results.difference(first, second, column)
    if difference is None:
        return Answer(f"not measured over {title}", MISSING)
    return Answer(f"{difference} over {title}", difference.verdict)


def better_than_all(first: Row, others: Sequence[Row], column: Column) -> Answering:
    """Answers "the row is better than all of these", many of them, in few words."""

    def answer(results: Results) -> Answer:
        differences: dict[str, Difference] = {}
        for row in others:
            difference = results.difference(first, row, column)
            if difference is None:
                return NOT_MEASURED
            differences[row.short_title] = difference
        verdicts = [difference.verdict for difference in differences.values()]
        ahead = sum(difference.points > 0 for difference in differences.values())
        closest = min(differences, key=lambda title: differences[title].points)
        measured = (
            f"ahead of {ahead} of {len(others)}, significantly of {verdicts.count(HOLDS)}; at the "
            f"least {differences[closest]} over {closest}"
        )
        return Answer(measured, together(verdicts))

    return answer


def vector_against_scalar(results: Results) -> Answer:
    """Answers "vector attention is better with every number of heads", of figure 2."""
    vector, scalar = _best_dev("vector", results), _best_dev("scalar", results)
    if not vector or not scalar:
        return NOT_MEASURED
    leads = {heads: score - scalar[heads][0] for heads, (score, _) in vector.items()}
    verdicts = [_dev_verdict(lead, *vector[heads]) for heads, lead in leads.items()]
    parts = "; ".join(f"{heads}: {100 * lead:+.2f} points" for heads, lead in leads.items())
    ahead = sum(lead > 0 for lead in leads.values())
    return Answer(f"{parts} (ahead in {ahead} of {len(leads)})", together(verdicts))


def several_heads(family: str) -> Answering:
    """Answers "several heads are better than one", for a family of figure 2."""

    def answer(results: Results) -> Answer:
        scores = _best_dev(family, results)
        if not scores:
            return NOT_MEASURED
        listed = ", ".join(f"{heads} {100 * score:.2f}" for heads, (score, _) in scores.items())
        one, *several = scores.values()
        most = max(several)
        verdict = _dev_verdict(most[0] - one[0], *most)
        return Answer(f"{listed}; best: {max(scores, key=lambda heads: scores[heads][0])}", verdict)

    return answer


def _best_dev(family: str, results: Results) -> dict[str, tuple[float, int]]:
    """Returns the best dev accuracy, and the rows behind it, by the number of heads.

    Empty while a model is missing.
    """
    figure, scores = EXPERIMENTS["figure2"], {}
    for row in figure.rows:
        if row.system == FAMILIES[family]:
            record = results.record(row, figure.columns[0])
            if record is None:
                return {}
            heads = row.title.removeprefix(f"{family}, ")
            scores[heads] = max(record.dev_curve), record.counts["dev"]
    return scores


def _dev_verdict(lead: float, accuracy: float, rows: int) -> str:
    """Returns the verdict on a model that is ahead of another by `lead` on the dev set."""
    noise = 1.96 * (accuracy * (1 - accuracy) / rows) ** 0.5
    return HOLDS if lead > noise else FAILS if lead < -noise else OPEN


def attention_distance(results: Results) -> Answer:
    """Answers "the penalty makes the heads look at different words", of figure 3."""
    figure = EXPERIMENTS["figure3"]
    distances = []
    for title in ("penalty on attention matrices", "no penalty"):
        record = results.record(figure.row(title), figure.columns[0])
        if record is None or ATTENTION_DISTANCE not in record.heads:
            return NOT_MEASURED
        distances.append(record.heads[ATTENTION_DISTANCE])
    with_penalty, without = distances
    measured = f"mean squared distance between the heads' attention: {with_penalty:.3g} with, "
    measured += f"{without:.3g} without"
    # One model each: a difference that another seed could turn round decides nothing.
    if max(distances) < CLEAR_RATIO * min(distances):
        return Answer(measured, OPEN)
    return Answer(measured, HOLDS if with_penalty > without else FAILS)
