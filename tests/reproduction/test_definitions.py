"""Every definition of a table or a figure can be run, at every scale."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from genpool.encoder import ENCODERS
from genpool.errors import ConfigError
from genpool.recipes import recipe_text
from genpool.reproduction.definitions import EXPERIMENTS, SYSTEMS
from genpool.reproduction.ledger import Ledger
from genpool.reproduction.plan import Plan
from genpool.reproduction.reproduction import reproduce
from genpool.reproduction.tasks import SCALES
from genpool.training import read_settings

from .records import empty_ledger


@pytest.mark.parametrize("scale", SCALES)
def test_every_definition_is_right_at_every_scale(scale: str, tmp_path: Path) -> None:
    plan = Plan(scale, empty_ledger(tmp_path))
    for experiment in EXPERIMENTS.values():
        for row, column in product(experiment.rows, experiment.columns):
            assert column.split in plan.scale.tasks[column.task].splits
            for penalty in ("none", "attention 1"):
                cell = plan.cell(column.task, row.system, row.overrides, 0, penalty)
                # Word vectors are found when a cell is run; some recipes refuse to start without.
                overrides = [*cell.overrides, "vectors.path=vectors.txt"]
                if penalty == "none" or row.system == "generalized":
                    read_settings(recipe_text(cell.recipe), overrides)


def test_every_row_of_a_table_that_the_paper_has_says_the_papers_figures() -> None:
    for name in ("table1", "table2", "table3", "table4"):
        experiment = EXPERIMENTS[name]
        rows = [row for row in experiment.rows if row.paper]
        assert all(len(row.paper) == len(experiment.columns) for row in rows)
        assert all(50 < accuracy < 90 for row in rows for accuracy in row.paper)


def test_every_system_is_in_some_table() -> None:
    used = {row.system for experiment in EXPERIMENTS.values() for row in experiment.rows}
    assert used == set(SYSTEMS)


def test_every_row_of_the_papers_table_1_is_trained_by_a_system_of_its_own() -> None:
    systems = [row.system for row in EXPERIMENTS["table1"].rows if row.paper]
    assert len(systems) == 19 + 4 == len(set(systems))


@pytest.mark.parametrize("scale", SCALES)
def test_two_poolings_are_compared_on_one_shortcut_stacked_encoder(
    scale: str, tmp_path: Path
) -> None:
    plan = Plan(scale, empty_ledger(tmp_path))
    cells = [plan.cell("snli", name, (), 0) for name in ("shortcut", "shortcut-generalized")]
    both = [read_settings(recipe_text(cell.recipe), cell.overrides) for cell in cells]
    assert [settings.pooling.name for settings in both] == ["max", "generalized"]
    assert both[0].encoder == both[1].encoder
    assert both[0].encoder.name == "shortcut-stacked"
    assert replace(both[0], pooling=both[1].pooling) == both[1]


def test_systems_read_parses_if_their_encoders_read_trees(tmp_path: Path) -> None:
    plan = Plan("small", empty_ledger(tmp_path))
    for name, system in SYSTEMS.items():
        cell = plan.cell("snli", name, (), 0)
        settings = read_settings(recipe_text(cell.recipe), cell.overrides)
        reads = ENCODERS[settings.encoder.name].annotator_class is not None
        assert system.reads_parses is reads
        # Tables have no parses, so that a parser makes them; the generated corpus does without.
        assert settings.encoder.options.get("parser") == ("spacy" if reads else None)
        assert "parser" not in str(Plan("tiny", plan.ledger).cell("snli", name, (), 0).overrides)


def test_a_reproduction_that_was_started_finds_its_cells_again(tmp_path: Path) -> None:
    """A cell whose settings change would be trained again: these took days."""
    finished = Ledger(Path(__file__).parents[2] / "results" / "reproduction" / "cells.jsonl")
    left, needed = Plan("small", finished).left(list(EXPERIMENTS.values()))
    assert left == [] and needed == set(finished.records)
    rate = ("training.learning_rate=0.001",)
    plan = Plan("paper", empty_ledger(tmp_path))
    assert plan.cell("snli", "shortcut", rate, 0).key == "a23932ee7536"


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
    out = tmp_path / "out"
    given = {"names": ["table3"], "scale": "tiny", **arguments}
    with pytest.raises(ConfigError, match=message):
        reproduce(out=out, **given)
    assert not out.exists()
