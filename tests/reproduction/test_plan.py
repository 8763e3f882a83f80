"""Which cells are run next: choices on the dev set, and penalties that are inactive."""

from __future__ import annotations

from pathlib import Path

import pytest

from genpool.reproduction.definitions import Row
from genpool.reproduction.plan import Choice, Plan
from genpool.reproduction.tasks import SCALES

from .records import done, empty_ledger, failed

RATES = ("0.001", "0.002", "0.004")
WEIGHTS = SCALES["small"].weights


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return Plan("small", empty_ledger(tmp_path))


def choose(plan: Plan, task: str, system: str, penalty: str) -> Choice:
    return plan.choice(Row("a row", system, penalty=penalty), task)


def rate_cells(plan: Plan, rate: str) -> list:
    override = (f"training.learning_rate={rate}",)
    return [plan.cell("snli", system, override, 0) for system in ("max", "generalized")]


def choose_rate(plan: Plan, best: str = "0.001") -> None:
    for rate in RATES:
        for cell in rate_cells(plan, rate):
            plan.ledger.add(done(cell, dev=0.8 if rate == best else 0.7))


def test_the_learning_rate_comes_first_and_needs_two_systems_for_each_rate(plan: Plan) -> None:
    choice = choose(plan, "snli", "mean", "none")
    assert choice.cell is None
    expected = [cell for rate in RATES for cell in rate_cells(plan, rate)]
    assert list(choice.needed) == expected


@pytest.mark.parametrize("best", RATES)
def test_all_systems_have_the_rate_that_was_best_on_dev(plan: Plan, best: str) -> None:
    choose_rate(plan, best)
    for task, system in (
        ("snli", "mean"),
        ("snli", "disan"),
        ("multinli", "max"),
        ("age", "generalized"),
        ("yelp", "last"),
    ):
        cell = choose(plan, task, system, "none").cell
        assert cell is not None
        assert f"training.learning_rate={best}" in cell.overrides


def test_the_mean_of_both_systems_decides(plan: Plan) -> None:
    # By hand: 0.5 + 0.9 = 1.4 is less than 0.75 + 0.7 = 1.45 and more than 0.6 + 0.6 = 1.2.
    for rate, devs in zip(RATES, ((0.5, 0.9), (0.75, 0.7), (0.6, 0.6)), strict=True):
        for cell, dev in zip(rate_cells(plan, rate), devs, strict=True):
            plan.ledger.add(done(cell, dev=dev))
    cell = choose(plan, "snli", "mean", "none").cell
    assert cell is not None and "training.learning_rate=0.002" in cell.overrides


def test_a_rate_that_fails_is_not_chosen(plan: Plan) -> None:
    choose_rate(plan, "0.002")
    plan.ledger.add(failed(rate_cells(plan, "0.002")[0], "the loss is nan"))
    cell = choose(plan, "snli", "mean", "none").cell
    assert cell is not None and "training.learning_rate=0.002" not in cell.overrides


def penalty_cell(plan: Plan, name: str, weight: str):
    override = ("training.learning_rate=0.001",)
    return plan.cell("snli", "generalized", override, 0, f"{name} {weight}")


def test_a_penalty_that_is_inactive_is_run_once(plan: Plan) -> None:
    choose_rate(plan)
    first = penalty_cell(plan, "parameter", WEIGHTS[0])
    assert choose(plan, "snli", "generalized", "parameter").needed == (first,)
    plan.ledger.add(done(first, asleep=True))
    choice = choose(plan, "snli", "generalized", "parameter")
    assert (choice.cell, choice.needed) == (first, ())


def test_a_penalty_that_is_active_is_tried_with_every_weight_and_dev_decides(plan: Plan) -> None:
    choose_rate(plan)
    cells = [penalty_cell(plan, "attention", weight) for weight in WEIGHTS]
    plan.ledger.add(done(cells[0], dev=0.80))
    assert choose(plan, "snli", "generalized", "attention").needed == tuple(cells[1:])
    for cell, dev in zip(cells[1:], (0.81, 0.83, 0.83, 0.7), strict=True):
        plan.ledger.add(
            done(cell, dev=dev, correct=10 if dev == 0.83 else 190)
        )  # test is not asked
    assert choose(plan, "snli", "generalized", "attention").cell == cells[2]


def test_the_best_penalty_is_run_with_every_seed(plan: Plan) -> None:
    choose_rate(plan)
    plan.ledger.add(done(penalty_cell(plan, "parameter", "1"), asleep=True, dev=0.8))
    for name in ("attention", "embedding"):
        for weight in WEIGHTS:
            dev = 0.9 if (name, weight) == ("embedding", "1e-2") else 0.75
            plan.ledger.add(done(penalty_cell(plan, name, weight), dev=dev))
    choices = plan.seeds(Row("a row", "generalized", (), "best", several_seeds=True), "snli")
    assert [choice.cell.penalty for choice in choices if choice.cell] == ["embedding 1e-2"] * 5
    assert [len(choice.needed) for choice in choices] == [0, 1, 1, 1, 1]


def test_no_penalty_wins_a_tie(plan: Plan) -> None:
    choose_rate(plan, "0.001")  # generalized pooling without a penalty has 0.8
    for name in ("parameter", "attention", "embedding"):
        for weight in WEIGHTS:
            plan.ledger.add(done(penalty_cell(plan, name, weight), dev=0.8))
    cell = choose(plan, "snli", "generalized", "best").cell
    assert cell is not None and cell.penalty == "none"


def test_options_that_a_system_does_not_have_are_left_out(plan: Plan) -> None:
    settings = plan.cell("snli", "cnn", (), 0).overrides
    assert "encoder.maps=64" in settings
    assert not any(
        setting.startswith(("encoder.hidden_dim", "encoder.layers")) for setting in settings
    )
    assert not any(setting.startswith("pooling.heads") for setting in settings)


def test_figure_2_shares_its_cell_of_five_heads_with_the_tables(plan: Plan) -> None:
    table = plan.cell("snli", "generalized", ("training.learning_rate=0.001",), 0)
    extra = ("training.learning_rate=0.001", "pooling.heads=5")
    assert plan.cell("snli", "generalized", extra, 0).key == table.key
