"""The schedule by sequences worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from genpool.training.settings import TrainingSettings
from genpool.training.state import Decision, Schedule

BEST = Decision(is_best=True)
HALVE = Decision(is_best=False, restore=True)
LAST = Decision(is_best=False, restore=True, stop=True)
WORSE = Decision(is_best=False)
STOP = Decision(is_best=False, stop=True)


def test_below_the_best_restores_and_halves_and_a_tie_counts_as_an_improvement() -> None:
    settings = TrainingSettings(schedule="restore-halve", halvings=8)
    schedule = Schedule(learning_rate=0.8)
    story = [
        (0.50, BEST, 0.8),
        (0.60, BEST, 0.8),
        (0.60, BEST, 0.8),  # a tie
        (0.59, HALVE, 0.4),
        (0.60, BEST, 0.4),  # a tie with the best so far, and the rate stays
        (0.30, HALVE, 0.2),
        (0.55, HALVE, 0.1),  # better than the one before, but not than the best
        (0.61, BEST, 0.1),
        (0.60, HALVE, 0.05),  # what was a best is one no longer
    ]
    for accuracy, decision, rate in story:
        assert schedule.after(accuracy, settings) == decision
        assert schedule.learning_rate == pytest.approx(rate, rel=1e-12)
    assert schedule.best == 0.61
    assert schedule.halvings == 4


def test_it_stops_at_the_eighth_halving_whatever_lies_between() -> None:
    settings = TrainingSettings()  # the defaults are those of the released program
    schedule = Schedule(learning_rate=4e-4)
    assert schedule.after(0.7, settings) == BEST
    for halving in range(1, 8):
        assert schedule.after(0.6, settings) == HALVE, halving
        assert schedule.after(0.7, settings) == BEST, halving
    assert schedule.after(0.6, settings) == LAST
    assert schedule.learning_rate == pytest.approx(4e-4 / 2**8, rel=1e-12)


def test_the_first_evaluation_is_the_best_even_at_zero() -> None:
    assert Schedule(0.1).after(0.0, TrainingSettings()) == BEST


def test_a_constant_rate_goes_on_for_ever_without_patience() -> None:
    settings = TrainingSettings(schedule="constant")
    schedule = Schedule(learning_rate=0.3)
    decisions = [schedule.after(accuracy, settings) for accuracy in (0.5, *[0.4] * 30, 0.5)]
    assert decisions == [BEST, *[WORSE] * 30, BEST]
    assert schedule.learning_rate == 0.3
    assert schedule.halvings == 0


def test_patience_counts_evaluations_in_a_row() -> None:
    settings = TrainingSettings(schedule="constant", patience=2)
    schedule = Schedule(learning_rate=0.3)
    story = [(0.5, BEST), (0.4, WORSE), (0.5, BEST), (0.4, WORSE), (0.3, STOP)]
    assert [schedule.after(accuracy, settings) for accuracy, _ in story] == [
        decision for _, decision in story
    ]


def test_the_linear_schedule_rises_to_its_rate_and_falls_to_zero() -> None:
    settings = TrainingSettings(schedule="linear", warmup=0.2)
    schedule = Schedule(learning_rate=0.8)
    rates = [schedule.rate_at(step, 10, settings) for step in range(10)]
    # Two steps up, then eight equal steps down, of which the last would be at zero.
    by_hand = [0.4, 0.8, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
    assert rates == pytest.approx(by_hand, rel=1e-12)


def test_the_linear_schedule_never_goes_back_and_stops_by_patience() -> None:
    settings = TrainingSettings(schedule="linear", patience=2)
    schedule = Schedule(learning_rate=0.8)
    decisions = [schedule.after(accuracy, settings) for accuracy in (0.5, 0.4, 0.5, 0.4, 0.3)]
    assert decisions == [BEST, WORSE, BEST, WORSE, STOP]
    assert schedule.learning_rate == 0.8


@pytest.mark.parametrize("schedule", ["restore-halve", "constant"])
def test_the_other_schedules_have_one_rate_for_every_step(schedule: Any) -> None:
    settings = TrainingSettings(schedule=schedule)
    assert {Schedule(0.3).rate_at(step, 100, settings) for step in range(100)} == {0.3}


def test_the_linear_schedule_prefers_later_weights_within_a_standard_error() -> None:
    settings = TrainingSettings(schedule="linear")
    schedule = Schedule(learning_rate=0.8)
    story = [(0.90, BEST), (0.85, BEST), (0.79, WORSE), (0.80, BEST), (0.95, BEST), (0.84, WORSE)]
    assert [schedule.after(score, settings, 0.1) for score, _ in story] == [d for _, d in story]
    assert schedule.best == 0.95
    constant = Schedule(learning_rate=0.8, best=0.9)
    assert constant.after(0.85, TrainingSettings(schedule="constant"), 0.1) == WORSE
