"""Verdicts on what the paper reads from its figures 2 and 3.

A lead on the dev set is a finding when it is larger than half the 95 % interval of one accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass

from genpool.reproduction.figure2 import FAMILIES, FIGURE2
from genpool.reproduction.results import Results, column_of, find
from genpool.reproduction.verdicts import (
    FAILS,
    HOLDS,
    NOT_MEASURED,
    OPEN,
    Answer,
    Answering,
    together,
)

#: how many times as large one of two distances must be where there is one model each
CLEAR_RATIO = 2.0
#: the name under which a run's metrics hold the mean distance between the attention of heads
ATTENTION_DISTANCE = "heads_attention_distance_mean"


@dataclass(frozen=True)
class DevScore:
    """The best dev accuracy of a run, and the number of rows behind it."""

    accuracy: float
    rows: int

    def verdict_on(self, lead: float) -> str:
        """Returns the verdict on a model of this accuracy that is ahead of another by `lead`."""
        noise = 1.96 * (self.accuracy * (1 - self.accuracy) / self.rows) ** 0.5
        return HOLDS if lead > noise else FAILS if lead < -noise else OPEN


def vector_against_scalar(results: Results) -> Answer:
    """Returns the answer to "vector attention is better with every number of heads"."""
    vector, scalar = _best_dev("vector", results), _best_dev("scalar", results)
    if vector is None or scalar is None:
        return NOT_MEASURED
    leads = {heads: best.accuracy - scalar[heads].accuracy for heads, best in vector.items()}
    verdicts = [vector[heads].verdict_on(lead) for heads, lead in leads.items()]
    parts = "; ".join(f"{heads}: {100 * lead:+.2f} points" for heads, lead in leads.items())
    ahead = sum(lead > 0 for lead in leads.values())
    return Answer(f"{parts} (ahead in {ahead} of {len(leads)})", together(verdicts))


def several_heads(family: str) -> Answering:
    """Returns the answer to "several heads are better than one", for a family of figure 2."""

    def answer(results: Results) -> Answer:
        scores = _best_dev(family, results)
        if scores is None:
            return NOT_MEASURED
        listed = ", ".join(f"{heads} {100 * best.accuracy:.2f}" for heads, best in scores.items())
        top = max(scores, key=lambda heads: scores[heads].accuracy)
        one, *several = scores.values()
        most = max(several, key=lambda best: best.accuracy)
        lead = most.accuracy - one.accuracy
        return Answer(f"{listed}; best: {top}", most.verdict_on(lead))

    return answer


def attention_distance(results: Results) -> Answer:
    """Returns the answer to "the penalty makes the heads look at different words"."""
    column = column_of("figure3", "Age")
    titles = ("penalty on attention matrices", "no penalty")
    distances = []
    for title in titles:
        record = results.record(find("figure3", title), column)
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


def _best_dev(family: str, results: Results) -> dict[str, DevScore] | None:
    """Returns the best dev accuracy by the number of heads; None while a model is missing."""
    scores = {}
    for row in FIGURE2.rows:
        if row.system == FAMILIES[family]:
            record = results.record(row, FIGURE2.columns[0])
            if record is None:
                return None
            heads = row.title.removeprefix(f"{family}, ")
            scores[heads] = DevScore(max(record.dev_curve), record.counts["dev"])
    return scores
