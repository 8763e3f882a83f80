"""Choosing settings on the dev set."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genpool import TextClassifier
from genpool.errors import ConfigError, TrainingError
from genpool.training import selection
from genpool.training.selection import folder_name, parse_selections, select
from tests.helpers.training_runs import (
    RECIPE,
    metrics,
    run,
    scores,
    stopping,
    weights,
    without_pictures,
)

KEY = "training.learning_rate"
#: nothing is learned with the first and the last
RATES, HEADS = ("1e-9", "0.05", "1e-8"), ("1", "2")
GRID = [f"{KEY}={','.join(RATES)}", f"pooling.heads={','.join(HEADS)}"]


@pytest.fixture(scope="module")
def grid(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("selection") / "grid"
    with without_pictures():
        select(RECIPE, ["training.epochs=3"], GRID, tables, out, show_progress=False)
    return out


def predictions(run: Path) -> set[str]:
    return {path.name for path in (run / "predictions").iterdir()}


def test_the_combination_with_the_best_dev_accuracy_is_chosen_and_tested_alone(grid):
    text, dev = (grid / "selection.md").read_text(), {}
    for values in product(RATES, HEADS):
        out = grid / f"{KEY}={values[0]},pooling.heads={values[1]}"
        dev[values] = scores(out)["dev"]["accuracy"], out
    best = max(dev, key=lambda values: dev[values][0])  # the first of equals
    assert best[0] == "0.05"  # nothing is learned with the others
    for values, (accuracy, out) in dev.items():
        row = f"| {values[0]} | {values[1]} | {100 * accuracy:.2f} % |"
        assert (f"{row} chosen |" if values == best else row) in text
        if values == best:
            assert predictions(out) == {"dev.tsv", "test.tsv"}
            TextClassifier.from_pretrained(out / "best")
        else:
            assert predictions(out) == {"dev.tsv"} and scores(out).keys() == {"dev"}
            assert "| test | not scored |" in (out / "report.md").read_text()
            assert "accuracy on test" not in (out / "best" / "README.md").read_text()
    assert text.count("| chosen |") == 1
    assert f"| 1e-9 | 1 | {100 * dev['1e-9', '1'][0]:.2f} % |  |" in text


def test_finished_runs_are_not_trained_again(tables, tmp_path, trained):
    arguments = (RECIPE, ["training.epochs=1"], f"{KEY}=1e-9,2e-9,3e-9", tables, tmp_path / "runs")
    stop = stopping(selection, "train", 3, KeyboardInterrupt)
    with stop, pytest.raises(KeyboardInterrupt):
        select(*arguments, show_progress=False)
    assert trained == [f"{KEY}=1e-9", f"{KEY}=2e-9"]
    trained.clear()
    values, model, results = select(*arguments, resume=True, show_progress=False)
    assert trained == [f"{KEY}=3e-9"]
    assert results.keys() == {"dev", "test"}
    assert (values, model) == ({KEY: "1e-9"}, tmp_path / "runs" / f"{KEY}=1e-9" / "best")
    page = (tmp_path / "runs" / "selection.md").read_text()
    assert "% | chosen |" in page.split("| 1e-9 |")[1].splitlines()[0]  # first of equals
    assert "% | level with the chosen one |" in page.split("| 2e-9 |")[1].splitlines()[0]


def test_a_selection_is_a_setting_and_its_values():
    assert parse_selections(["penalty.weight=1,1e-1, 1e-2", "pooling.heads = 1,5"]) == {
        "penalty.weight": ["1", "1e-1", "1e-2"],
        "pooling.heads": ["1", "5"],
    }
    commas = parse_selections(["a.b=[1,3], [5]", 'vectors.path="a,b.txt",c.txt'])
    assert commas == {"a.b": ["[1,3]", "[5]"], "vectors.path": ['"a,b.txt"', "c.txt"]}


@pytest.mark.parametrize(
    "text", ["penalty.weight", "penalty.weight=1,1", "weight=1,2", ".weight=1,2", "a.b.c=1,2"]
)
def test_a_bad_selection_is_refused_with_what_is_expected(text):
    with pytest.raises(ConfigError, match=r"expected section\.key=value,value") as error:
        parse_selections([text])
    assert repr(text) in str(error.value)


def test_all_values_are_checked_before_the_first_is_trained(tables, tmp_path, trained):
    with pytest.raises(ConfigError, match=r"training\.batch_size is 'many'"):
        select(RECIPE, [], "training.batch_size=4,many", tables, tmp_path / "runs")
    with pytest.raises(ConfigError, match="the word table would stay random"):
        select(RECIPE, [], "embedding.frozen=false,true", tables, tmp_path / "runs")
    assert trained == []
    assert not (tmp_path / "runs").exists()


def test_a_weight_is_not_chosen_for_a_penalty_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match=r"penalty\.name is 'none'"):
        select(RECIPE, [], "penalty.weight=1,0.1", tmp_path / "data", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_test_only_dev_is_scored(tables, tmp_path):
    arguments = (RECIPE, ["training.epochs=1"], f"{KEY}=1e-9,0.05", tables, tmp_path)
    choice = select(*arguments, show_progress=False, score_tests=False)
    assert choice.results.keys() == {"dev"}
    for value in ("1e-9", "0.05"):
        assert predictions(tmp_path / f"{KEY}={value}") == {"dev.tsv"}
    page = (tmp_path / "selection.md").read_text()
    assert "The test splits were not scored (`--no-test`)." in page
    assert "- test:" not in page


def test_another_selection_in_one_folder_is_refused(grid, tables, trained):
    before = (grid / "selection.md").read_bytes()
    with pytest.raises(TrainingError, match="another run"):
        select(RECIPE, ["training.epochs=5"], GRID, tables, grid, resume=True)
    for other in (f"{KEY}=0.05,0.01", "pooling.heads=1,2"):
        with pytest.raises(TrainingError, match="holds runs of another selection"):
            select(RECIPE, ["training.epochs=3"], other, tables, grid, resume=True)
    assert trained == []
    assert (grid / "selection.md").read_bytes() == before
    assert len(list(grid.glob("*/config.toml"))) == 6


# --- Selection names ------------------------------------------------------------------------------


values = st.text(min_size=1, max_size=60)


@given(st.lists(st.tuples(values, values), min_size=2, max_size=2, unique=True))
def test_other_values_have_names_that_every_system_allows_and_none_is_shared(combinations):
    names = [
        folder_name({"vectors.path": one, "embedding.character_widths": other})
        for one, other in combinations
    ]
    for name in names:
        assert not set(name) & set('<>:"/\\|?*\0')
        assert name.isascii() and name.isprintable()
        assert name[-1] not in ". " and len(name) <= 200
    assert names[0].casefold() != names[1].casefold()
    readable = folder_name({"vectors.path": "data/glove.6B.txt"})
    assert readable.startswith("vectors.path=data-glove.6b.txt-")


# --- A sweep over a penalty that is inactive trains one model, and says so ------------------------


#: heads begin about 0.01 apart: at this threshold no hinge is ever active
INACTIVE = ("penalty.name=parameter", "penalty.threshold=1e-6", "training.epochs=1")


def test_an_inactive_penalty_leaves_the_same_weights_whatever_its_weight(tables, tmp_path):
    for weight in ("1", "1e-3", "1e6"):
        run(tables, tmp_path / weight, *INACTIVE, f"penalty.weight={weight}")
        assert all(line["penalty_active"] == 0 for line in metrics(tmp_path / weight))
    assert weights(tmp_path / "1") == weights(tmp_path / "1e-3") == weights(tmp_path / "1e6")
    closest = min(line["penalty_distance_min"] for line in metrics(tmp_path / "1"))
    lower = ("penalty.weight=1", f"penalty.threshold={0.99 * closest}")
    run(tables, tmp_path / "closest", *INACTIVE, *lower)
    assert weights(tmp_path / "closest") == weights(tmp_path / "1")
    run(tables, tmp_path / "awake", *INACTIVE, "penalty.weight=1", "penalty.threshold=100")
    assert weights(tmp_path / "awake") != weights(tmp_path / "1")


@pytest.mark.parametrize(
    ("selections", "runs", "left_out"),
    [
        (
            ["penalty.weight=1,0.1,0.01"],
            ["penalty.weight=1"],
            {
                ("0.1",): "inactive at threshold 1e-06, same model as penalty.weight = 1",
                ("0.01",): "inactive at threshold 1e-06, same model as penalty.weight = 1",
            },
        ),
        (  # only thresholds that cannot wake it
            ["penalty.threshold=1e-6,1e-8,2e-6,100"],
            ["penalty.threshold=1e-6", "penalty.threshold=100"],
            {
                ("1e-8",): "inactive at threshold 1e-08, same model as penalty.threshold = 1e-6",
                ("2e-6",): "inactive at threshold 2e-06, same model as penalty.threshold = 1e-6",
            },
        ),
        (  # a weight of zero is not taken for inactive
            ["penalty.name=none,parameter", "penalty.weight=1,0"],
            [
                "penalty.name=none,penalty.weight=1",
                "penalty.name=parameter,penalty.weight=1",
                "penalty.name=parameter,penalty.weight=0",
            ],
            {
                ("none", "0"): "penalty.name is none, same model as penalty.name = none, "
                "penalty.weight = 1"
            },
        ),
    ],
)
def test_what_would_repeat_the_model_of_another_penalty_is_not_run_and_said(
    tables, tmp_path, trained, capsys, selections, runs, left_out
):
    select(RECIPE, INACTIVE, selections, tables, tmp_path / "runs", show_progress=False)
    assert trained == runs
    assert sorted(path.name for path in (tmp_path / "runs").glob("*=*")) == sorted(runs)
    said, page = capsys.readouterr().err, (tmp_path / "runs" / "selection.md").read_text()
    keys = [selection.split("=")[0] for selection in selections]
    for values, reason in left_out.items():
        title = ", ".join(f"{key} = {value}" for key, value in zip(keys, values, strict=True))
        assert f"{title}: not run: {reason}" in said
        assert f"| {' | '.join(values)} | - | not run: {reason} |" in page
