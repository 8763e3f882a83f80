"""Verdicts: significant over the rows, and larger than the spread over seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

from genpool.evaluation.significance import compare_correct
from genpool.experiments.claims import (
    CLAIMS,
    FAILS,
    HOLDS,
    MISSING,
    OPEN,
    answers,
    together,
    verdict,
)
from genpool.experiments.reproduction import Reproduction
from genpool.experiments.results import Difference, Results, find
from genpool.experiments.table1 import TABLE1
from genpool.experiments.table3 import TABLE3
from genpool.experiments.tables import accuracy_table, own_penalty_note, trees_note

from .records import done


def difference(only_first: int, only_second: int, rows: int, spread: float | None) -> Difference:
    first, second = np.zeros(rows), np.zeros(rows)
    first[:only_first] = 1
    second[only_first : only_first + only_second] = 1
    comparison = compare_correct(first, second)
    return Difference(comparison, 100 * (only_first - only_second) / rows, spread)


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
    assert verdict(difference(*given)) == expected


def test_without_figures_there_is_no_verdict() -> None:
    assert verdict(None) == MISSING


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
    assert compare_correct(first, second).t_p_value == pytest.approx(p_value)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(Reproduction(tmp_path, "tiny"))


def enter(results: Results, system: str, correct: int, task: str = "yelp") -> None:
    results.ledger.add(done(results.plan.cell(task, system, (), 0), correct=correct))


def test_every_claim_is_answered_without_any_figure(results: Results) -> None:
    verdicts = {answer.verdict for _, answer in answers(results)}
    assert verdicts == {MISSING}


def test_a_claim_is_answered_from_the_rows_of_the_test_set(results: Results) -> None:
    for system, correct in (("mean", 150), ("max", 100), ("last", 120)):
        enter(results, system, correct)
    claim = next(claim for claim in CLAIMS if claim.text.startswith("Yelp: mean pooling"))
    answer = claim.answer(results)
    assert answer.verdict == HOLDS
    # The generated corpus of the tiny scale decides nothing, whatever came out.
    assert dict(answers(results))[claim].verdict == OPEN
    assert "+25.00 points" in answer.measured and "+15.00 points" in answer.measured


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
    assert "43 % of the gradient at the end of the training on SNLI" in note


def test_rows_are_found_by_their_titles() -> None:
    assert find("table4", "no penalty").system == "generalized"
