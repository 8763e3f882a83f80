"""Which cells are run next: definitions, choices on the dev set, and the ledger of what is done."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from genpool.encoder import ENCODERS
from genpool.errors import ConfigError, FolderError
from genpool.recipes import recipe_text
from genpool.reproduction.definitions import (
    EXPERIMENTS,
    SCALES,
    SYSTEMS,
    TUNED_ON,
    Column,
    Experiment,
    Row,
)
from genpool.reproduction.ledger import Cell, Ledger, Record, pack_rows, parse_overrides
from genpool.reproduction.plan import Plan
from genpool.reproduction.reproduction import reproduce
from genpool.training import RunSettings, read_settings

from .records import done, empty_plan, failed

# --- Definitions: every table and figure can be run, at every scale -------------------------------


def settings_of(cell: Cell, *overrides: str) -> RunSettings:
    return read_settings(recipe_text(cell.recipe), [*cell.overrides, *overrides])


@pytest.mark.parametrize("scale", SCALES)
def test_every_definition_is_right_at_every_scale(scale: str, tmp_path: Path) -> None:
    plan, read = empty_plan(tmp_path, scale), set()
    for experiment in EXPERIMENTS.values():
        for row, column in product(experiment.rows, experiment.columns):
            assert column.split in plan.scale.tasks[column.task].splits
            for penalty in ("none", "attention 1"):
                cell = plan.cell(column.task, row.system, row.overrides, 0, penalty)
                # Word vectors are found when a cell is run; some recipes refuse to start without.
                if cell.key not in read and (penalty == "none" or row.system == "generalized"):
                    read.add(cell.key)
                    settings_of(cell, "vectors.path=vectors.txt")


def test_rows_say_the_papers_figures_and_use_every_system() -> None:
    for name in ("table1", "table2", "table3", "table4"):
        experiment = EXPERIMENTS[name]
        rows = [row for row in experiment.rows if row.paper]
        assert all(len(row.paper) == len(experiment.columns) for row in rows)
        assert all(50 < accuracy < 90 for row in rows for accuracy in row.paper)
    used = {row.system for experiment in EXPERIMENTS.values() for row in experiment.rows}
    assert used == set(SYSTEMS)
    # Every row of the paper's table 1 is trained by a system of its own.
    systems = [row.system for row in EXPERIMENTS["table1"].rows if row.paper]
    assert len(systems) == 19 + 4 == len(set(systems))


def test_systems_read_parses_if_their_encoders_read_trees(tmp_path: Path) -> None:
    plan = empty_plan(tmp_path, "small")
    for name, system in SYSTEMS.items():
        settings = settings_of(plan.cell("snli", name, (), 0))
        reads = ENCODERS[settings.encoder.name].annotator_class is not None
        assert system.reads_parses is reads
        # Tables have no parses, so that a parser makes them; the generated corpus does without.
        assert settings.encoder.options.get("parser") == ("spacy" if reads else None)
        tiny = empty_plan(tmp_path, "tiny").cell("snli", name, (), 0)
        assert "parser" not in str(tiny.overrides)


def test_a_reproduction_that_was_started_finds_its_cells_again(tmp_path: Path) -> None:
    """A cell whose settings change would be trained again: these took days."""
    finished = Ledger(Path(__file__).parents[2] / "results" / "reproduction" / "cells.jsonl")
    left, needed = Plan(SCALES["small"], finished).left(list(EXPERIMENTS.values()))
    assert left == [] and needed == set(finished.records)
    rate = ("training.learning_rate=0.001",)
    assert empty_plan(tmp_path, "paper").cell("snli", "shortcut", rate, 0).key == "a23932ee7536"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"names": ["table9"]}, "unknown table or figure 'table9'. Did you mean 'table"),
        ({"scale": "smal"}, "unknown scale 'smal'. Did you mean 'small'"),
        ({"only": "BiLSTM maxpooling"}, "Did you mean 'BiLSTM max pooling'"),
    ],
)
def test_nothing_is_made_for_a_name_that_does_not_exist(
    arguments: dict, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        reproduce(**{"names": ["table3"], "scale": "tiny", "out": tmp_path / "out", **arguments})
    assert not (tmp_path / "out").exists()


# --- Choices on the dev set -----------------------------------------------------------------------

RATES = ("0.001", "0.002", "0.004")
WEIGHTS = SCALES["small"].weights


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return empty_plan(tmp_path, "small")


def choose(plan: Plan, task: str, system: str, penalty: str) -> tuple[Cell | None, list[Cell]]:
    """Returns the cell that a row shows, if it is chosen, and the cells that are needed for it."""
    row = Row("a row", system, penalty=penalty)
    needed = plan.pending([Experiment("a table", (Column("a column", task),), (row,))])
    return plan.cell_of(row, task), needed


def rate_cells(plan: Plan, rate: str) -> list[Cell]:
    override = (f"training.learning_rate={rate}",)
    return [plan.cell("snli", system, override, 0) for system in TUNED_ON]


def choose_rate(plan: Plan, best: str = "0.001") -> None:
    for rate in RATES:
        for cell in rate_cells(plan, rate):
            plan.ledger.add(done(cell, dev=0.8 if rate == best else 0.7))


@pytest.mark.parametrize("best", RATES)
def test_all_systems_have_the_rate_that_was_best_on_dev(plan: Plan, best: str) -> None:
    needed = [cell for rate in RATES for cell in rate_cells(plan, rate)]
    assert choose(plan, "snli", "mean", "none") == (None, needed)  # the rate comes first
    choose_rate(plan, best)
    for task, system in (("snli", "disan"), ("multinli", "max"), ("age", "mean"), ("yelp", "last")):
        cell, _ = choose(plan, task, system, "none")
        assert cell is not None and f"training.learning_rate={best}" in cell.overrides


def test_the_mean_of_both_systems_decides_and_a_rate_that_fails_is_not_chosen(plan: Plan) -> None:
    # By hand: 0.5 + 0.9 = 1.4 is less than 0.75 + 0.7 = 1.45 and more than 0.6 + 0.6 = 1.2.
    for rate, devs in zip(RATES, ((0.5, 0.9), (0.75, 0.7), (0.6, 0.6)), strict=True):
        for cell, dev in zip(rate_cells(plan, rate), devs, strict=True):
            plan.ledger.add(done(cell, dev=dev))
    assert plan.learning_rate() == ("training.learning_rate=0.002",)
    plan.ledger.add(failed(rate_cells(plan, "0.002")[0], "the loss is nan"))
    assert plan.learning_rate() == ("training.learning_rate=0.001",)


def penalty_cell(plan: Plan, name: str, weight: str) -> Cell:
    override = ("training.learning_rate=0.001",)
    return plan.cell("snli", "generalized", override, 0, f"{name} {weight}")


def test_a_penalty_that_is_inactive_is_run_once(plan: Plan) -> None:
    choose_rate(plan)
    first = penalty_cell(plan, "parameter", WEIGHTS[0])
    assert choose(plan, "snli", "generalized", "parameter") == (None, [first])
    plan.ledger.add(done(first, inactive=True))
    assert choose(plan, "snli", "generalized", "parameter") == (first, [])


def test_a_penalty_that_is_active_is_tried_with_every_weight_and_dev_decides(plan: Plan) -> None:
    choose_rate(plan)
    cells = [penalty_cell(plan, "attention", weight) for weight in WEIGHTS]
    plan.ledger.add(done(cells[0], dev=0.80))
    assert choose(plan, "snli", "generalized", "attention") == (None, cells[1:])
    for cell, dev in zip(cells[1:], (0.81, 0.83, 0.83, 0.7), strict=True):
        # The test set, where the others are better, is not asked.
        plan.ledger.add(done(cell, dev=dev, correct=10 if dev == 0.83 else 190))
    assert choose(plan, "snli", "generalized", "attention") == (cells[2], [])


def test_the_best_penalty_is_run_with_every_seed(plan: Plan) -> None:
    choose_rate(plan)
    plan.ledger.add(done(penalty_cell(plan, "parameter", "1"), inactive=True, dev=0.8))
    for name, weight in product(("attention", "embedding"), WEIGHTS):
        dev = 0.9 if (name, weight) == ("embedding", "1e-2") else 0.75
        plan.ledger.add(done(penalty_cell(plan, name, weight), dev=dev))
    row = Row("a row", "generalized", (), "best", several_seeds=True)
    cells = plan.seeds(row, "snli")
    assert [cell.penalty for cell in cells] == ["embedding 1e-2"] * 5
    assert [cell.seed for cell in cells] == list(range(5))
    assert plan.pending([Experiment("", (Column("", "snli"),), (row,))]) == cells[1:]


def test_no_penalty_wins_a_tie(plan: Plan) -> None:
    choose_rate(plan, "0.001")  # generalized pooling without a penalty has 0.8
    for name, weight in product(("parameter", "attention", "embedding"), WEIGHTS):
        plan.ledger.add(done(penalty_cell(plan, name, weight), dev=0.8))
    cell, _ = choose(plan, "snli", "generalized", "best")
    assert cell is not None and cell.penalty == "none"


def test_a_cell_has_the_options_of_its_system_and_is_shared_by_tables_and_figures(
    plan: Plan,
) -> None:
    settings = parse_overrides(plan.cell("snli", "cnn", (), 0).overrides)
    assert settings["encoder.maps"] == "64"
    assert not {"encoder.hidden_dim", "encoder.layers", "pooling.heads"} & settings.keys()
    rate = "training.learning_rate=0.001"
    table = plan.cell("snli", "generalized", (rate,), 0)
    assert plan.cell("snli", "generalized", (rate, "pooling.heads=5"), 0).key == table.key


# --- The ledger keeps whole lines, whatever happened to the last one ------------------------------

ONE = Cell("tiny", "snli", "max", "rules", ("training.epochs=1",), 0)
OTHER = Cell("tiny", "snli", "mean", "rules", ("training.epochs=2",), 0)


@pytest.mark.parametrize("count", [0, 1, 8, 9, 1000])
def test_rows_come_back_as_they_were(count: int) -> None:
    rows = np.random.default_rng(count).random(count) < 0.3
    record = Record("", "done", correct={"test": pack_rows(rows)}, counts={"test": count})
    assert record.correct_rows("test").tolist() == rows.tolist()


@pytest.mark.parametrize("kept", [1, 40, -2])
def test_a_line_cut_short_is_forgotten_and_written_over(tmp_path: Path, kept: int) -> None:
    ledger = Ledger(tmp_path / "cells.jsonl")
    ledger.add(done(ONE))
    whole = ledger.path.read_bytes()
    ledger.add(done(OTHER))
    ledger.path.write_bytes(whole + ledger.path.read_bytes()[len(whole) :][:kept])
    again = Ledger(ledger.path)
    assert again.done(ONE) is not None and again.done(OTHER) is None
    again.add(done(OTHER, dev=0.75))
    last = Ledger(ledger.path).done(OTHER)
    assert last is not None and last.dev == 0.75
    assert len(ledger.path.read_bytes().splitlines()) == 2
    ledger.path.write_bytes(ledger.path.read_bytes() + b'{"key": 1}\n')
    with pytest.raises(FolderError, match=r"cells\.jsonl, line 3, is not a record"):
        Ledger(ledger.path)
