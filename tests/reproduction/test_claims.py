"""Verdicts: significant over the rows, and larger than the spread over seeds."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

from genpool.evaluation.significance import paired_p_value
from genpool.reproduction.claims import BEYOND, CLAIMS, Claim, answers
from genpool.reproduction.definitions import EARLIER, EXPERIMENTS, PENALTIES, Row
from genpool.reproduction.report_parts import accuracy_table, own_penalty_note, trees_note
from genpool.reproduction.reproduction import Reproduction
from genpool.reproduction.tasks import SCALES
from genpool.reproduction.verdicts import (
    FAILS,
    HOLDS,
    MISSING,
    OPEN,
    Answer,
    Difference,
    Results,
    together,
)

from .records import done

TABLE1, TABLE3, TABLE4 = (EXPERIMENTS[name] for name in ("table1", "table3", "table4"))
WEIGHTS = SCALES["tiny"].weights


def difference(only_first: int, only_second: int, rows: int, spread: float | None) -> Difference:
    first, second = np.zeros(rows), np.zeros(rows)
    first[:only_first] = 1
    second[only_first : only_first + only_second] = 1
    points, p_value = 100 * (only_first - only_second) / rows, paired_p_value(first, second)
    return Difference(points, p_value, mcnemar_p_value=math.nan, spread=spread)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((60, 20, 1000, None), HOLDS),
        ((20, 60, 1000, None), FAILS),
        ((25, 20, 1000, None), OPEN),
        ((60, 20, 1000, 3.0), HOLDS),  # 4 points, more than the seeds differ
        ((60, 20, 1000, 5.0), OPEN),  # significant over rows, but no more than another seed gives
        ((0, 0, 1000, None), OPEN),
    ],
)
def test_verdict(given: tuple, expected: str) -> None:
    assert difference(*given).verdict == expected


def test_a_difference_is_of_all_seeds_where_both_rows_have_several(results: Results) -> None:
    """The models of seed 0 are level; with seed 1 the first is right on 40 rows of 200 more."""
    for seed, ahead in enumerate((0, 40)):
        for system, correct in (("max", 100 + ahead), ("mean", 100)):
            cell = results.plan.cell("snli", system, (), seed)
            results.ledger.add(done(cell, correct=correct))
    rows = TABLE1.row("BiLSTM max pooling"), TABLE1.row("BiLSTM mean pooling")
    found = results.difference(*rows, TABLE1.columns[0])
    assert found is not None and found.points == pytest.approx(10)  # the mean of 0 and 20
    shares = [1.0] * 100 + [0.5] * 40 + [0.0] * 60  # half of the seeds are right on 40 rows
    by_hand = ttest_rel(shares, [1.0] * 100 + [0.0] * 100, alternative="greater")
    assert found.p_value == pytest.approx(by_hand.pvalue)
    assert found.mcnemar_p_value == 1  # of seed 0, without a difference
    assert found.spread == pytest.approx(200**0.5)  # of 0 and 20, and of two that are equal


def test_a_claim_is_as_weak_as_its_weakest_part() -> None:
    assert together([HOLDS, HOLDS]) == HOLDS
    assert together([HOLDS, OPEN]) == OPEN
    assert together([HOLDS, OPEN, FAILS]) == FAILS
    assert together([HOLDS, MISSING, FAILS]) == MISSING


def test_the_papers_p_value_for_age_is_not_possible() -> None:
    """82.63 against 82.30 of 4,000 rows are 13 rows: the least p is that of 13 wins, no loss."""
    first, second = np.zeros(4000), np.zeros(4000)
    first[:13] = 1
    p_value = ttest_rel(first, second, alternative="greater").pvalue
    assert p_value == pytest.approx(1.5e-4, rel=0.1)
    assert paired_p_value(first, second) == pytest.approx(p_value)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(Reproduction(tmp_path, "tiny"))


def enter(results: Results, system: str, correct: int, task: str = "yelp") -> None:
    results.ledger.add(done(results.plan.cell(task, system, (), 0), correct=correct))


def test_every_claim_is_answered_without_any_figure(results: Results) -> None:
    verdicts = {answer.verdict for _, answer in answers(results, (*CLAIMS, *BEYOND))}
    assert verdicts == {MISSING}


def test_a_claim_is_answered_from_the_rows_of_the_test_set(results: Results) -> None:
    for system, correct in (("mean", 150), ("max", 100), ("last", 120)):
        enter(results, system, correct)
    mean = claim("Yelp: mean pooling")
    answer = mean.answer(results)
    assert answer.verdict == HOLDS
    # The generated corpus of the tiny scale decides nothing, whatever came out.
    assert dict(answers(results, CLAIMS))[mean].verdict == OPEN
    assert "+25.00 points" in answer.measured and "+15.00 points" in answer.measured


def claim(start: str) -> Claim:
    return next(claim for claim in CLAIMS if claim.text.startswith(start))


def test_a_claim_of_two_columns_names_them(results: Results) -> None:
    for task, correct in (("yelp", 150), ("age", 90)):
        enter(results, "max", correct, task)
        enter(results, "self-attention", 100, task)
    answer = claim("Yelp and Age: max pooling").answer(results)
    assert answer.verdict == FAILS  # as weak as its weakest part
    assert answer.measured.startswith("Yelp: +25.00 points") and "; Age: -5.00" in answer.measured


def test_the_pooling_is_compared_on_the_shortcut_stacked_encoder(results: Results) -> None:
    enter(results, "shortcut", 110, task="snli")
    enter(results, "shortcut-generalized", 150, task="snli")
    answer = BEYOND[-1].answer(results)
    assert answer.verdict == HOLDS and answer.measured.startswith("+20.00 points")


def test_a_penalty_that_is_inactive_improves_nothing(results: Results) -> None:
    enter(results, "generalized", 100, task="snli")
    cell = results.plan.cell("snli", "generalized", (), 0, f"parameter {WEIGHTS[0]}")
    results.ledger.add(done(cell, correct=100, asleep=True))
    answer = claim("SNLI: the penalty on parameter matrices").answer(results)
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
    results: Results, best_earlier: int, expected: str, measured: str
) -> None:
    wanted = claim("SNLI: generalized pooling without a penalty is better than all")
    enter(results, "generalized", 150, task="snli")
    for row in EARLIER[:-1]:
        enter(results, row.system, 80, task="snli")
    assert wanted.answer(results).verdict == MISSING
    enter(results, EARLIER[-1].system, best_earlier, task="snli")
    answer = wanted.answer(results)
    assert answer.verdict == expected
    assert answer.measured.startswith(measured) and "over 300D ReSAN" in answer.measured


def enter_figure2(results: Results, accuracies: dict[str, dict[int, float]]) -> None:
    for family, by_heads in accuracies.items():
        for heads, dev in by_heads.items():
            row = EXPERIMENTS["figure2"].row(f"{family}, {heads} head" + "s" * (heads > 1))
            cell = results.plan.cell("snli", row.system, row.overrides, 0)
            results.ledger.add(done(cell, dev=dev))


def test_the_curves_of_figure_2_answer_its_claims(results: Results) -> None:
    """With 1,000 dev rows, half an interval is 1.96 sqrt(0.8 * 0.2 / 1000) = 2.5 points."""
    scalar = {1: 0.80, 3: 0.74, 5: 0.75, 7: 0.76, 9: 0.75}
    enter_figure2(results, {"scalar": scalar})
    assert claim("Figure 2: vector").answer(results).verdict == MISSING
    assert claim("Figure 2: several heads are better than one, scalar").answer(results) == Answer(
        "1 head 80.00, 3 heads 74.00, 5 heads 75.00, 7 heads 76.00, 9 heads 75.00; best: 1 head",
        FAILS,
    )
    enter_figure2(results, {"vector": {1: 0.79, 3: 0.80, 5: 0.81, 7: 0.80, 9: 0.82}})
    several = claim("Figure 2: several heads are better than one, vector").answer(results)
    assert several.verdict == HOLDS and several.measured.endswith("best: 9 heads")
    ahead = claim("Figure 2: vector").answer(results)
    assert ahead.verdict == OPEN  # one head is not behind, by less than chance
    assert "1 head: -1.00 points" in ahead.measured and "(ahead in 4 of 5)" in ahead.measured
    enter_figure2(results, {"vector": {1: 0.70}})
    assert claim("Figure 2: vector").answer(results).verdict == FAILS  # behind by 10 points


def test_a_table_shows_figures_reasons_and_gaps(results: Results) -> None:
    enter(results, "max", 100)
    enter(results, "mean", 150)
    table = accuracy_table(TABLE3, results).splitlines()
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
def test_a_table_says_which_systems_had_real_parses(
    results: Results, trees: str, verdict: str
) -> None:
    enter(results, "nti", 100, task="snli")
    assert trees_note(TABLE1, results) == ""
    cell = results.plan.cell("snli", "spinn", (), 0)
    results.ledger.add(done(cell, trees=trees))
    assert f"- 600D SPINN-PI: {verdict} ({trees})" in trees_note(TABLE1, results).splitlines()
    assert "NTI is balanced by definition" in trees_note(TABLE1, results)


def test_a_table_says_what_a_penalty_of_another_paper_did(results: Results) -> None:
    enter(results, "max", 100, task="snli")
    assert own_penalty_note(TABLE1, results) == ""
    cell = results.plan.cell("snli", "self-attention", (), 0)
    results.ledger.add(done(cell, heads={"penalty_gradient_share": 0.4314}))
    note = own_penalty_note(TABLE1, results)
    assert note.startswith("- 600D BiLSTM self-attention has the penalty of its own paper")
    assert "was 0.43 times as long" in note and note.endswith("the training on SNLI.")


@pytest.mark.parametrize(
    ("row", "title"),
    [
        (TABLE1.row("BiLSTM generalized pooling"), "(attention 1e-2, inactive)"),
        (TABLE4.row("penalty on attention matrices"), "(weight 1e-2, inactive)"),
    ],
)
def test_a_row_says_which_weight_was_chosen_on_dev(results: Results, row: Row, title: str) -> None:
    for name, weight in product(PENALTIES, WEIGHTS):
        cell = results.plan.cell("snli", "generalized", (), 0, f"{name} {weight}")
        best = (name, weight) == ("attention", "1e-2")
        results.ledger.add(done(cell, dev=0.8 if best else 0.6, asleep=best))
    results.ledger.add(done(results.plan.cell("snli", "generalized", (), 0), dev=0.7))
    table = TABLE1 if row.penalty == "best" else TABLE4
    assert f"| {row.title} {title} |" in accuracy_table(table, results)
