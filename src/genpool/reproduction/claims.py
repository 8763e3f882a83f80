"""The claims of the paper's section 5 (paper.toml), each with what was measured and a verdict.

A difference between two rows is a finding when it is significant over the rows of the test set
(one-tailed paired t-test, p < 0.05) and, where several seeds were trained, larger than the spread
over seeds. A lead on the dev set (figure 2) is one when it is larger than half the 95 % interval of
one accuracy; one distance of figure 3 when it is `CLEAR_RATIO` times the other.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genpool.evaluation.accuracy import compare_correct, paired_t_test
from genpool.reproduction import definitions
from genpool.reproduction.definitions import EXPERIMENTS, NONE, Column, Row
from genpool.reproduction.ledger import Record
from genpool.reproduction.plan import Plan

HOLDS, FAILS, OPEN = "holds", "does not hold", "not decidable at this scale"
MISSING = "not measured"
SIGNIFICANT = 0.05
#: how many times as large one of two distances must be where there is one model each
CLEAR_RATIO = 2.0
#: the name under which a run's metrics hold the mean distance between the attention of heads
ATTENTION_DISTANCE = "heads_attention_distance_mean"


def weakest(verdicts: Sequence[str]) -> str:
    """Returns the verdict on a claim of several parts: as weak as its weakest part."""
    return next(verdict for verdict in (MISSING, FAILS, OPEN, HOLDS) if verdict in verdicts)


@dataclass(frozen=True)
class Difference:
    """How much one row is ahead of another in a column, as templates/report.md explains."""

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


def row_difference(plan: Plan, first: Row, second: Row, column: Column) -> Difference | None:
    """Returns how much the first row is ahead, or None while one of the two is missing."""
    one, other = plan.record(first, column), plan.record(second, column)
    if one is None or other is None:
        return None
    split = plan.split(column)
    mcnemar = compare_correct(_right([one], split), _right([other], split)).mcnemar_p_value
    ours, theirs = plan.records(first, column), plan.records(second, column)
    spread = None
    if min(len(ours), len(theirs)) < 2:
        ours, theirs = [one], [other]
    else:
        accuracies = [[100 * seed.accuracy[split] for seed in side] for side in (ours, theirs)]
        spread = sum(map(statistics.variance, accuracies)) ** 0.5
    right, right_of_other = _right(ours, split), _right(theirs, split)
    points = 100 * float(right.mean() - right_of_other.mean())
    return Difference(points, paired_t_test(right, right_of_other)[1], mcnemar, spread)


def _right(records: Sequence[Record], split: str) -> NDArray[np.float64]:
    """Returns the share of the models that are right, for every row of a test split, (rows,)."""
    right: NDArray[np.float64] = np.mean([record.correct_rows(split) for record in records], axis=0)
    return right


class Answer(NamedTuple):
    """What was measured, and the verdict."""

    measured: str
    verdict: str


NOT_MEASURED = Answer("not measured", MISSING)


@dataclass(frozen=True)
class Claim:
    """A statement and the figures of the paper behind it; the other fields say how to answer it."""

    text: str
    paper: str
    table: str = ""
    columns: Sequence[str] = ()
    better: str = ""  # the title of a row
    than: Sequence[str] | str = ()  # titles of other rows, or "earlier systems"
    answer: str = ""  # a name of `ANSWERS`

    def answer_from(self, plan: Plan) -> Answer:
        """Returns the answer; the generated corpus of the tiny scale decides nothing."""
        answer = ANSWERS[self.answer](plan) if self.answer else self._better(plan)
        if plan.scale.decides or answer.verdict == MISSING:
            return answer
        return Answer(answer.measured, OPEN)

    def _better(self, plan: Plan) -> Answer:
        experiment, parts, verdicts = EXPERIMENTS[self.table], [], []
        row, columns = experiment.row(self.better), [*map(experiment.column, self.columns)]
        if isinstance(self.than, str):
            return _better_than_all(plan, row, definitions.EARLIER, columns[0])
        for column in columns:
            compared = [_compare(plan, row, experiment.row(than), column) for than in self.than]
            where = f"{column.title}: " if len(columns) > 1 else ""
            parts.append(where + "; ".join(part.measured for part in compared))
            verdicts += [part.verdict for part in compared]
        return Answer("; ".join(parts), weakest(verdicts))


def _compare(plan: Plan, first: Row, second: Row, column: Column) -> Answer:
    record, title = plan.record(first, column), second.short_title
    same_system = first.system == second.system
    if record is not None and record.inactive and same_system and second.penalty == NONE:
        # No step had a gradient of the penalty: nothing could be better, at any number of rows.
        return Answer(f"the same model as {title}: the penalty is inactive", FAILS)
    difference = row_difference(plan, first, second, column)
    if difference is None:
        return Answer(f"not measured over {title}", MISSING)
    return Answer(f"{difference} over {title}", difference.verdict)


def _better_than_all(plan: Plan, first: Row, others: Sequence[Row], column: Column) -> Answer:
    """Answers "the row is better than all of these", many of them, in few words."""
    differences = {}
    for row in others:
        difference = row_difference(plan, first, row, column)
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
    return Answer(measured, weakest(verdicts))


def _vector_against_scalar(plan: Plan) -> Answer:
    """Answers "vector attention is better with every number of heads", of figure 2."""
    vector, scalar = _best_dev(plan, "vector"), _best_dev(plan, "scalar")
    if not vector or not scalar:
        return NOT_MEASURED
    leads = {heads: score - scalar[heads][0] for heads, (score, _) in vector.items()}
    verdicts = [_dev_verdict(lead, *vector[heads]) for heads, lead in leads.items()]
    parts = "; ".join(f"{heads}: {100 * lead:+.2f} points" for heads, lead in leads.items())
    ahead = sum(lead > 0 for lead in leads.values())
    return Answer(f"{parts} (ahead in {ahead} of {len(leads)})", weakest(verdicts))


def _several_heads(family: str, plan: Plan) -> Answer:
    """Answers "several heads are better than one", for a family of figure 2."""
    scores = _best_dev(plan, family)
    if not scores:
        return NOT_MEASURED
    listed = ", ".join(f"{heads} {100 * score:.2f}" for heads, (score, _) in scores.items())
    one, *several = scores.values()
    most = max(several)
    verdict = _dev_verdict(most[0] - one[0], *most)
    return Answer(f"{listed}; best: {max(scores, key=lambda heads: scores[heads][0])}", verdict)


def _best_dev(plan: Plan, family: str) -> dict[str, tuple[float, int]]:
    """Returns best dev accuracies and their rows by the number of heads, or none if one misses."""
    figure, scores = EXPERIMENTS["figure2"], {}
    for row in figure.rows:
        if row.system == definitions.FAMILIES[family]:
            record = plan.record(row, figure.columns[0])
            if record is None:
                return {}
            heads = row.title.removeprefix(f"{family}, ")
            scores[heads] = max(record.dev_curve), record.counts["dev"]
    return scores


def _dev_verdict(lead: float, accuracy: float, rows: int) -> str:
    """Returns the verdict on a model that is ahead of another by `lead` on the dev set."""
    noise = 1.96 * (accuracy * (1 - accuracy) / rows) ** 0.5
    return HOLDS if lead > noise else FAILS if lead < -noise else OPEN


def _attention_distance(plan: Plan) -> Answer:
    """Answers "the penalty makes the heads look at different words", of figure 3."""
    figure = EXPERIMENTS["figure3"]
    records = [plan.record(row, figure.columns[0]) for row in figure.rows]  # with, and without
    heads = [record.heads for record in records if record is not None]
    distances = [found[ATTENTION_DISTANCE] for found in heads if ATTENTION_DISTANCE in found]
    if len(distances) < 2:
        return NOT_MEASURED
    with_penalty, without = distances
    measured = f"mean squared distance between the heads' attention: {with_penalty:.3g} with, "
    measured += f"{without:.3g} without"
    # One model each: a difference that another seed could turn round decides nothing.
    if max(distances) < CLEAR_RATIO * min(distances):
        return Answer(measured, OPEN)
    return Answer(measured, HOLDS if with_penalty > without else FAILS)


ANSWERS: dict[str, Callable[[Plan], Answer]] = {
    "vector against scalar": _vector_against_scalar,
    "several heads, vector": partial(_several_heads, "vector"),
    "several heads, scalar": partial(_several_heads, "scalar"),
    "attention distance": _attention_distance,
}


#: what the paper claims, and statements beyond it that a reader of its tables asks for
CLAIMS = [Claim(**claim) for claim in definitions.PAPER["claims"]]
BEYOND = [Claim(**claim) for claim in definitions.PAPER["beyond"]]
