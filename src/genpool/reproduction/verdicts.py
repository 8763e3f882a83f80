"""From two rows of a table to a verdict on "the first is better than the second".

A difference is a finding when it is significant over the rows of the test set (one-tailed paired
t-test, p < 0.05) and, where several seeds were trained, larger than the spread over seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from genpool.reproduction.definition import Column, Row, short_title
from genpool.reproduction.plan import NONE
from genpool.reproduction.results import Difference, Results, column_of, find

HOLDS, FAILS, OPEN = "holds", "does not hold", "not decidable at this scale"
MISSING = "not measured"
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Answer:
    """What was measured, and the verdict."""

    measured: str
    verdict: str


#: how a claim is answered
Answering = Callable[[Results], Answer]
NOT_MEASURED = Answer("not measured", MISSING)


def verdict(difference: Difference | None) -> str:
    """Returns the verdict on "the first is better than the second"."""
    if difference is None:
        return MISSING
    if difference.spread is not None and abs(difference.points) <= difference.spread:
        return OPEN
    if difference.points > 0 and difference.p_value < SIGNIFICANT:
        return HOLDS
    if difference.points < 0 and difference.p_value > 1 - SIGNIFICANT:
        return FAILS
    return OPEN


def together(verdicts: Sequence[str]) -> str:
    """Returns the verdict on a claim of several parts: as weak as its weakest part."""
    return next(verdict for verdict in (MISSING, FAILS, OPEN, HOLDS) if verdict in verdicts)


def better(table: str, columns: str | Sequence[str], first: str, *others: str) -> Answering:
    """Returns the answer to "the first row is better than every other one", in all the columns."""
    titles = [columns] if isinstance(columns, str) else columns

    def answer(results: Results) -> Answer:
        parts, verdicts = [], []
        for title in titles:
            column, row = column_of(table, title), find(table, first)
            compared = [_comparison(results, row, find(table, other), column) for other in others]
            where = f"{title}: " if len(titles) > 1 else ""
            parts.append(where + "; ".join(part.measured for part in compared))
            verdicts += [part.verdict for part in compared]
        return Answer("; ".join(parts), together(verdicts))

    return answer


def better_than_all(first: Row, others: Sequence[Row], column: Column) -> Answering:
    """Returns the answer to "the row is better than all of these", many of them, in few words."""

    def answer(results: Results) -> Answer:
        differences: dict[str, Difference] = {}
        for row in others:
            difference = results.difference(first, row, column)
            if difference is None:
                return NOT_MEASURED
            differences[row.title] = difference
        verdicts = [verdict(difference) for difference in differences.values()]
        ahead = sum(difference.points > 0 for difference in differences.values())
        closest = min(differences, key=lambda title: differences[title].points)
        measured = (
            f"ahead of {ahead} of {len(others)}, significantly of {verdicts.count(HOLDS)}; at the "
            f"least {_points(differences[closest])} over {short_title(closest)}"
        )
        return Answer(measured, together(verdicts))

    return answer


def _comparison(results: Results, first: Row, second: Row, column: Column) -> Answer:
    record, title = results.record(first, column), short_title(second.title)
    same_system = first.system == second.system
    if record is not None and record.asleep and same_system and second.penalty == NONE:
        # No step had a gradient of the penalty: nothing could be better, at any number of rows.
        return Answer(f"the same model as {title}: the penalty is asleep", FAILS)
    difference = results.difference(first, second, column)
    return Answer(f"{_points(difference)} over {title}", verdict(difference))


def _points(difference: Difference | None) -> str:
    if difference is None:
        return "not measured"
    spread = "" if difference.spread is None else f", spread over seeds {difference.spread:.2f}"
    return f"{difference.points:+.2f} points (p = {difference.p_value:.2g}{spread})"
