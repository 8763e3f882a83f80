"""The claims of the paper's section 5, each with what was measured and a verdict.

A difference is a finding when it is significant over the rows of the test set (one-tailed paired
t-test, p < 0.05) and, where several seeds were trained, larger than the spread over seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from genpool.experiments.definition import short_title
from genpool.experiments.figure2 import FAMILIES, FIGURE2
from genpool.experiments.results import Difference, Results, column_of, find

HOLDS, FAILS, OPEN = "holds", "does not hold", "not decidable at this scale"
MISSING = "not measured"
SIGNIFICANT = 0.05
#: how many times as large one of two distances must be where there is one model each
CLEAR_RATIO = 2.0


@dataclass(frozen=True)
class Answer:
    """What was measured, and the verdict."""

    measured: str
    verdict: str


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and how it is answered."""

    text: str
    paper: str
    answer: Callable[[Results], Answer]


def answers(results: Results) -> list[tuple[Claim, Answer]]:
    """Returns every claim with its answer; the generated corpus of the tiny scale decides none."""
    pairs = [(claim, claim.answer(results)) for claim in CLAIMS]
    if results.plan.scale != "tiny":
        return pairs
    return [
        (claim, answer if answer.verdict == MISSING else Answer(answer.measured, OPEN))
        for claim, answer in pairs
    ]


def verdict(difference: Difference | None) -> str:
    """Returns the verdict on "the first is better than the second"."""
    if difference is None:
        return MISSING
    if difference.spread is not None and abs(difference.points) <= difference.spread:
        return OPEN
    if difference.points > 0 and difference.rows.t_p_value < SIGNIFICANT:
        return HOLDS
    if difference.points < 0 and difference.rows.t_p_value > 1 - SIGNIFICANT:
        return FAILS
    return OPEN


def together(verdicts: Sequence[str]) -> str:
    """Returns the verdict on a claim of several parts: as weak as its weakest part."""
    return next(verdict for verdict in (MISSING, FAILS, OPEN, HOLDS) if verdict in verdicts)


def better(table: str, column: str, first: str, *others: str) -> Callable[[Results], Answer]:
    """Returns the answer to "the first row is better than every other one"."""

    def answer(results: Results) -> Answer:
        where = column_of(table, column)
        parts, verdicts = [], []
        for other in others:
            difference = results.difference(find(table, first), find(table, other), where)
            verdicts.append(verdict(difference))
            parts.append(f"{_points(difference)} over {short_title(other)}")
        return Answer("; ".join(parts), together(verdicts))

    return answer


def every(*answers: Callable[[Results], Answer]) -> Callable[[Results], Answer]:
    """Returns the answer to a claim that holds where all its parts do."""

    def answer(results: Results) -> Answer:
        parts = [part(results) for part in answers]
        measured = "; ".join(part.measured for part in parts)
        return Answer(measured, together([part.verdict for part in parts]))

    return answer


def _points(difference: Difference | None) -> str:
    if difference is None:
        return "not measured"
    spread = "" if difference.spread is None else f", spread over seeds {difference.spread:.2f}"
    return f"{difference.points:+.2f} points (p = {difference.rows.t_p_value:.2g}{spread})"


def _vector_against_scalar(results: Results) -> Answer:
    column = FIGURE2.columns[0]
    parts, verdicts = [], []
    titles = [row.title for row in FIGURE2.rows if row.title.startswith("vector")]
    for title in titles:
        scalar = title.replace("vector", "scalar")
        ours, theirs = (results.record(find("figure2", name), column) for name in (title, scalar))
        if ours is None or theirs is None:
            return Answer("not measured", MISSING)
        lead = 100 * (max(ours.dev_curve) - max(theirs.dev_curve))
        # Half the width of the 95 % interval of one accuracy on the dev set.
        noise = 100 * 1.96 * (ours.dev * (1 - ours.dev) / ours.counts["dev"]) ** 0.5
        parts.append(f"{title.removeprefix('vector, ')}: {lead:+.2f} points")
        verdicts.append(HOLDS if lead > noise else FAILS if lead < -noise else OPEN)
    ahead = sum(part.split(": +")[-1] != part for part in parts)
    common = together(verdicts) if len(set(verdicts)) == 1 else OPEN
    return Answer(f"{'; '.join(parts)} (ahead in {ahead} of {len(parts)})", common)


def _best_heads(family: str) -> Callable[[Results], Answer]:
    def answer(results: Results) -> Answer:
        column = FIGURE2.columns[0]
        curves = {}
        for row in FIGURE2.rows:
            if row.system == FAMILIES[family]:
                record = results.record(row, column)
                if record is None:
                    return Answer("not measured", MISSING)
                curves[row.title.split(", ")[1]] = (max(record.dev_curve), record.counts["dev"])
        best = max(curves, key=lambda heads: curves[heads][0])
        top, rows = curves[best]
        noise = 1.96 * (top * (1 - top) / rows) ** 0.5
        one = curves[next(iter(curves))][0]
        listed = ", ".join(f"{heads} {100 * value:.2f}" for heads, (value, _) in curves.items())
        return Answer(f"{listed}; best: {best}", HOLDS if top - one > noise else OPEN)

    return answer


def _attention_distance(results: Results) -> Answer:
    column = column_of("figure3", "Age")
    records = [
        results.record(find("figure3", title), column)
        for title in ("penalty on attention matrices", "no penalty")
    ]
    distances = [record.heads.get(ATTENTION_DISTANCE) if record else None for record in records]
    if None in distances:
        return Answer("not measured", MISSING)
    with_penalty, without = (float(distance or 0) for distance in distances)
    measured = f"mean squared distance between the heads' attention: {with_penalty:.3g} with, "
    measured += f"{without:.3g} without"
    # One model each: a difference that another seed could turn round decides nothing.
    if max(with_penalty, without) < CLEAR_RATIO * min(with_penalty, without):
        return Answer(measured, OPEN)
    return Answer(measured, HOLDS if with_penalty > without else FAILS)


#: the name under which a run's metrics hold the mean distance between the attention of heads
ATTENTION_DISTANCE = "heads_attention_distance_mean"

_GENERALIZED, _MAX = "BiLSTM generalized pooling", "BiLSTM max pooling"
_MEAN, _LAST = "BiLSTM mean pooling", "BiLSTM last pooling"
_BASELINES = (_MAX, _MEAN, _LAST)
_NO_PENALTY = "no penalty"
_PARAMETER, _ATTENTION, _EMBEDDING = (
    "penalty on parameter matrices",
    "penalty on attention matrices",
    "penalty on sentence embeddings",
)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "SNLI: generalized pooling is better than max pooling, significantly",
        "86.6 against 85.3, p < 0.00001",
        better("table1", "SNLI", _GENERALIZED, _MAX),
    ),
    Claim(
        "SNLI: generalized pooling is better than mean and last pooling",
        "86.6 against 85.0 and 84.9",
        better("table1", "SNLI", _GENERALIZED, _MEAN, _LAST),
    ),
    Claim(
        "SNLI: max pooling is the best of the three simple poolings",
        "85.3 against 85.0 and 84.9",
        better("table1", "SNLI", _MAX, _MEAN, _LAST),
    ),
    Claim(
        "MultiNLI: generalized pooling is better than the baselines, in domain",
        "73.8 against 73.6, 71.5 and 71.6",
        better("table2", "In", _GENERALIZED, *_BASELINES),
    ),
    Claim(
        "MultiNLI: generalized pooling is better than the baselines, across domains",
        "74.0 against 73.0, 71.6 and 71.9",
        better("table2", "Cross", _GENERALIZED, *_BASELINES),
    ),
    Claim(
        "MultiNLI: generalized pooling is better than the shortcut stacked BiLSTM across domains",
        "74.0 against 73.6",
        better("table2", "Cross", _GENERALIZED, "Shortcut stacked BiLSTM"),
    ),
    Claim(
        "Yelp and Age: max pooling on this encoder is better than Lin et al.'s self-attention",
        "65.00 against 64.21, 82.30 against 80.45",
        every(
            better("table3", "Yelp", _MAX, "BiLSTM self-attention (Lin et al.)"),
            better("table3", "Age", _MAX, "BiLSTM self-attention (Lin et al.)"),
        ),
    ),
    Claim(
        "Yelp: mean pooling is the best of the three simple poolings",
        "65.30 against 65.00 and 64.95",
        better("table3", "Yelp", _MEAN, _MAX, _LAST),
    ),
    Claim(
        "Age: max pooling is the best of the three simple poolings",
        "82.30 against 81.78 and 81.10",
        better("table3", "Age", _MAX, _MEAN, _LAST),
    ),
    Claim(
        "Yelp: generalized pooling is better than the baselines, significantly",
        "66.55 against 65.30, p < 0.00001",
        better("table3", "Yelp", _GENERALIZED, *_BASELINES),
    ),
    Claim(
        "Age: generalized pooling is better than the baselines, significantly",
        "82.63 against 82.30, p < 0.00001",
        better("table3", "Age", _GENERALIZED, *_BASELINES),
    ),
    Claim(
        "Figure 2: vector attention is better than scalar attention with every number of heads",
        "86.8 against 86.4 on the dev set, best of each",
        _vector_against_scalar,
    ),
    Claim(
        "Figure 2: several heads are better than one, vector attention",
        "9 heads are best",
        _best_heads("vector"),
    ),
    Claim(
        "Figure 2: several heads are better than one, scalar attention",
        "7 heads are best",
        _best_heads("scalar"),
    ),
    Claim(
        "SNLI: the penalty on parameter matrices improves generalized pooling",
        "86.6 against 86.4",
        better("table4", "SNLI", _PARAMETER, _NO_PENALTY),
    ),
    Claim(
        "MultiNLI: the penalty on parameter matrices improves generalized pooling",
        "73.8 against 73.7, 74.0 against 73.4",
        every(
            better("table4", "MultiNLI in", _PARAMETER, _NO_PENALTY),
            better("table4", "MultiNLI cross", _PARAMETER, _NO_PENALTY),
        ),
    ),
    Claim(
        "Yelp: the penalty on parameter matrices is the best of the three, and improves",
        "66.55 against 65.25",
        better("table4", "Yelp", _PARAMETER, _NO_PENALTY, _ATTENTION, _EMBEDDING),
    ),
    Claim(
        "Age: the penalty on attention matrices is the best of the three, and improves",
        "82.63 against 82.18",
        better("table4", "Age", _ATTENTION, _NO_PENALTY, _PARAMETER, _EMBEDDING),
    ),
    Claim(
        "Figure 3: the penalty on attention matrices makes the heads look at different words",
        "a picture",
        _attention_distance,
    ),
)
