"""Verdicts: significant over the rows, and larger than the spread over seeds."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_rel

from genpool.evaluation.accuracy import paired_t_test
from genpool.reproduction.claims import (
    BEYOND,
    CLAIMS,
    FAILS,
    HOLDS,
    MISSING,
    OPEN,
    Answer,
    Claim,
    Difference,
    row_difference,
    weakest,
)
from genpool.reproduction.definitions import EARLIER, EXPERIMENTS, PENALTIES, SCALES, Row
from genpool.reproduction.plan import Plan
from genpool.reproduction.report import accuracy_tables, own_penalty_note, trees_note

from .records import done, empty_plan

TABLE1, TABLE3, TABLE4 = (EXPERIMENTS[name] for name in ("table1", "table3", "table4"))
WEIGHTS = SCALES["tiny"].weights


@pytest.mark.parametrize(
    ("only_first", "only_second", "spread", "expected"),
    [
        (60, 20, None, HOLDS),
        (20, 60, None, FAILS),
        (25, 20, None, OPEN),
        (60, 20, 3.0, HOLDS),  # 4 points, more than the seeds differ
        (60, 20, 5.0, OPEN),  # significant over rows, but no more than another seed gives
        (0, 0, None, OPEN),
    ],
)
def test_verdict(only_first: int, only_second: int, spread: float | None, expected: str) -> None:
    first, second = np.zeros(1000), np.zeros(1000)
    first[:only_first] = 1
    second[only_first : only_first + only_second] = 1
    points, p_value = (only_first - only_second) / 10, paired_t_test(first, second)[1]
    assert Difference(points, p_value, math.nan, spread).verdict == expected


def test_a_difference_is_of_all_seeds_where_both_rows_have_several(plan: Plan) -> None:
    """The models of seed 0 are level; with seed 1 the first is right on 40 rows of 200 more."""
    for seed, ahead in enumerate((0, 40)):
        for system, correct in (("max", 100 + ahead), ("mean", 100)):
            enter(plan, system, correct, "snli", seed)
    rows = TABLE1.row("BiLSTM max pooling"), TABLE1.row("BiLSTM mean pooling")
    found = row_difference(plan, *rows, TABLE1.columns[0])
    assert found is not None and found.points == pytest.approx(10)  # the mean of 0 and 20
    shares = [1.0] * 100 + [0.5] * 40 + [0.0] * 60  # half of the seeds are right on 40 rows
    by_hand = ttest_rel(shares, [1.0] * 100 + [0.0] * 100, alternative="greater")
    assert found.p_value == pytest.approx(by_hand.pvalue)
    assert found.mcnemar_p_value == 1  # of seed 0, without a difference
    assert found.spread == pytest.approx(200**0.5)  # of 0 and 20, and of two that are equal


def test_the_papers_p_value_for_age_is_not_possible() -> None:
    """82.63 against 82.30 of 4,000 rows are 13 rows: the least p is that of 13 wins, no loss."""
    first, second = np.zeros(4000), np.zeros(4000)
    first[:13] = 1
    p_value = ttest_rel(first, second, alternative="greater").pvalue
    assert p_value == pytest.approx(1.5e-4, rel=0.1)
    assert paired_t_test(first, second)[1] == pytest.approx(p_value)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """The small models of the tiny scale, as if its data could decide a claim."""
    plan = empty_plan(tmp_path, "tiny")
    plan.scale = replace(plan.scale, decides=True)
    return plan


def enter(
    plan: Plan, system: str, correct: int = 100, task: str = "yelp", seed: int = 0, **fields: Any
) -> None:
    plan.ledger.add(done(plan.cell(task, system, (), seed), correct=correct, **fields))


def test_a_claim_is_answered_from_the_rows_of_the_test_set(plan: Plan) -> None:
    assert {claim.answer_from(plan).verdict for claim in (*CLAIMS, *BEYOND)} == {MISSING}
    for system, correct in (("mean", 150), ("max", 100), ("last", 120)):
        enter(plan, system, correct)
    mean = claim("Yelp: mean pooling")
    answer = mean.answer_from(plan)
    assert answer.verdict == HOLDS
    assert "+25.00 points" in answer.measured and "+15.00 points" in answer.measured
    # The generated corpus of the tiny scale decides nothing, whatever came out.
    tiny = Plan(SCALES["tiny"], plan.ledger)
    assert mean.answer_from(tiny) == Answer(answer.measured, OPEN)
    # A claim is as weak as its weakest part.
    parts = [HOLDS, OPEN, FAILS, MISSING]
    assert [weakest(parts[: count + 1]) for count in range(4)] == parts


def claim(start: str) -> Claim:
    return next(claim for claim in CLAIMS if claim.text.startswith(start))


def test_a_penalty_that_is_inactive_improves_nothing(plan: Plan) -> None:
    enter(plan, "generalized", 100, task="snli")
    cell = plan.cell("snli", "generalized", (), 0, f"parameter {WEIGHTS[0]}")
    plan.ledger.add(done(cell, correct=100, inactive=True))
    answer = claim("SNLI: the penalty on parameter matrices").answer_from(plan)
    assert answer.verdict == FAILS and "the same model as no penalty" in answer.measured


@pytest.mark.parametrize(
    ("best_earlier", "expected", "measured"),
    [
        (100, HOLDS, "ahead of 19 of 19, significantly of 19; at the least +25.00 points"),
        (149, OPEN, "ahead of 19 of 19, significantly of 18; at the least +0.50 points"),
        (170, FAILS, "ahead of 18 of 19, significantly of 18; at the least -10.00 points"),
    ],
)
def test_a_claim_about_all_earlier_systems(
    plan: Plan, best_earlier: int, expected: str, measured: str
) -> None:
    wanted = claim("SNLI: generalized pooling without a penalty is better than all")
    enter(plan, "generalized", 150, task="snli")
    for row in EARLIER[:-1]:
        enter(plan, row.system, 80, task="snli")
    assert wanted.answer_from(plan).verdict == MISSING
    enter(plan, EARLIER[-1].system, best_earlier, task="snli")
    answer = wanted.answer_from(plan)
    assert answer.verdict == expected
    assert answer.measured.startswith(measured) and "over 300D ReSAN" in answer.measured


def enter_figure2(plan: Plan, accuracies: dict[str, dict[int, float]]) -> None:
    for family, by_heads in accuracies.items():
        for heads, dev in by_heads.items():
            row = EXPERIMENTS["figure2"].row(f"{family}, {heads} head" + "s" * (heads > 1))
            cell = plan.cell("snli", row.system, row.overrides, 0)
            plan.ledger.add(done(cell, dev=dev))


def test_the_curves_of_figure_2_answer_its_claims(plan: Plan) -> None:
    """With 1,000 dev rows, half an interval is 1.96 sqrt(0.8 * 0.2 / 1000) = 2.5 points."""
    scalar = {1: 0.80, 3: 0.74, 5: 0.75, 7: 0.76, 9: 0.75}
    enter_figure2(plan, {"scalar": scalar})
    assert claim("Figure 2: vector").answer_from(plan).verdict == MISSING
    assert claim("Figure 2: several heads are better than one, scalar").answer_from(plan) == Answer(
        "1 head 80.00, 3 heads 74.00, 5 heads 75.00, 7 heads 76.00, 9 heads 75.00; best: 1 head",
        FAILS,
    )
    enter_figure2(plan, {"vector": {1: 0.79, 3: 0.80, 5: 0.81, 7: 0.80, 9: 0.82}})
    several = claim("Figure 2: several heads are better than one, vector").answer_from(plan)
    assert several.verdict == HOLDS and several.measured.endswith("best: 9 heads")
    ahead = claim("Figure 2: vector").answer_from(plan)
    assert ahead.verdict == OPEN  # one head is not behind, by less than chance
    assert "1 head: -1.00 points" in ahead.measured and "(ahead in 4 of 5)" in ahead.measured
    enter_figure2(plan, {"vector": {1: 0.70}})
    assert claim("Figure 2: vector").answer_from(plan).verdict == FAILS  # behind by 10 points


def test_a_table_shows_figures_reasons_and_gaps(plan: Plan) -> None:
    enter(plan, "max", 100)
    enter(plan, "mean", 150)
    table = accuracy_tables(TABLE3, plan).splitlines()
    mean = next(line for line in table if line.startswith("| BiLSTM mean pooling |"))
    assert "75.00" in mean and "65.3" in mean and "+25.00" in mean and "1,234" in mean
    # Wilson's interval of 150 in 200: (150 + z²/2 ± z sqrt(200 * 0.75 * 0.25 + z²/4)) / (200 + z²)
    z = 1.959964
    middle, half = 150 + z**2 / 2, z * (37.5 + z**2 / 4) ** 0.5
    low, high = (100 * end / (200 + z**2) for end in (middle - half, middle + half))
    assert f"{low:.2f} to {high:.2f}" in mean
    last = next(line for line in table if line.startswith("| BiLSTM last pooling |"))
    assert "not run yet" in last


@pytest.mark.parametrize(
    ("trees", "verdict"),
    [
        ("9 sentences: 9 from the data", "real parses"),
        ("9 sentences: 4 from the data, 5 parsed", "real parses"),
        ("9 sentences: 9 balanced", "balanced trees"),
        ("9 sentences: 8 parsed, 1 balanced", "real parses, and balanced trees for the rest"),
    ],
)
def test_a_table_says_which_systems_had_real_parses(plan: Plan, trees: str, verdict: str) -> None:
    enter(plan, "nti", 100, task="snli")
    assert trees_note(TABLE1, plan) == ""
    enter(plan, "spinn", task="snli", trees=trees)
    assert f"- 600D SPINN-PI: {verdict} ({trees})" in trees_note(TABLE1, plan).splitlines()
    assert "NTI is balanced by definition" in trees_note(TABLE1, plan)


def test_a_table_says_what_a_penalty_of_another_paper_did(plan: Plan) -> None:
    enter(plan, "max", 100, task="snli")
    assert own_penalty_note(TABLE1, plan) == ""
    enter(plan, "self-attention", task="snli", heads={"penalty_gradient_share": 0.4314})
    note = own_penalty_note(TABLE1, plan)
    assert note.startswith("- 600D BiLSTM self-attention has the penalty of its own paper")
    assert "was 0.43 times as long" in note and note.endswith("the training on SNLI.")


@pytest.mark.parametrize(
    ("row", "title"),
    [
        (TABLE1.row("BiLSTM generalized pooling"), "(attention 1e-2, inactive)"),
        (TABLE4.row("penalty on attention matrices"), "(weight 1e-2, inactive)"),
    ],
)
def test_a_row_says_which_weight_was_chosen_on_dev(plan: Plan, row: Row, title: str) -> None:
    for name, weight in product(PENALTIES, WEIGHTS):
        cell = plan.cell("snli", "generalized", (), 0, f"{name} {weight}")
        best = (name, weight) == ("attention", "1e-2")
        plan.ledger.add(done(cell, dev=0.8 if best else 0.6, inactive=best))
    plan.ledger.add(done(plan.cell("snli", "generalized", (), 0), dev=0.7))
    table = TABLE1 if row.penalty == "best" else TABLE4
    assert f"| {row.title} {title} |" in accuracy_tables(table, plan)
