"""How far the probabilities of a classifier are from how often it is right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genpool.errors import InputError
from genpool.evaluation import calibration_scores


def by_a_loop(rows: list[tuple[float, bool]], bins: int) -> float:
    """The expected calibration error as it is defined: one bin after the other."""
    error = 0.0
    for number in range(bins):
        low, high = number / bins, (number + 1) / bins
        inside = [row for row in rows if low < row[0] <= high or (number == 0 and row[0] == 0)]
        if inside:
            confidence = sum(sure for sure, _ in inside) / len(inside)
            accuracy = sum(right for _, right in inside) / len(inside)
            error += len(inside) / len(rows) * abs(accuracy - confidence)
    return error


ROWS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)
GRID = st.lists(
    st.tuples(st.integers(0, 30).map(lambda n: n / 30), st.booleans()), min_size=1, max_size=60
)


@given(rows=st.one_of(ROWS, GRID), bins=st.integers(1, 20))
def test_the_error_is_that_of_a_loop(rows: list[tuple[float, bool]], bins: int) -> None:
    scores = calibration_scores([sure for sure, _ in rows], [right for _, right in rows], bins)
    assert scores.error == pytest.approx(by_a_loop(rows, bins), abs=1e-12)
    assert scores.mean_confidence == pytest.approx(sum(sure for sure, _ in rows) / len(rows))


def test_there_are_fifteen_bins() -> None:
    confidences, correct = [0.61, 0.66, 0.67], [True, False, True]
    # 0.61 and 0.66 are in the bin from 9/15 to 10/15, 0.67 in the next one.
    expected = (abs(1 - 1.27) + abs(1 - 0.67)) / 3
    assert calibration_scores(confidences, correct).error == pytest.approx(expected)


def test_hand_worked_cases() -> None:
    scores = calibration_scores([0.9, 0.9, 0.6, 0.6], [True, True, True, False])
    assert scores.error == pytest.approx(0.1)
    assert scores.mean_confidence == pytest.approx(0.75)
    assert calibration_scores([1.0] * 4, [True] * 4).error == 0
    assert calibration_scores([1.0] * 4, [False] * 4).error == 1
    assert calibration_scores([0.75] * 4, [True, True, True, False]).error == 0


@pytest.mark.parametrize(
    ("confidences", "correct", "bins", "message"),
    [
        ([], [], 15, "no rows"),
        ([0.5], [True, False], 15, r"shape \(1,\) and correct \(2,\)"),
        ([[0.5]], [[True]], 15, "one of each per row"),
        ([1.5], [True], 15, "not within 0 to 1"),
        ([float("nan")], [True], 15, "not within 0 to 1"),
        ([0.5], [True], 0, "bins is 0"),
    ],
)
def test_what_cannot_be_used_is_told(
    confidences: list[float], correct: list[bool], bins: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        calibration_scores(confidences, correct, bins)
