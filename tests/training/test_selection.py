"""Choosing settings on the dev set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genpool import TextClassifier
from genpool.errors import ConfigError, TrainingError
from genpool.training import selection
from genpool.training.selection import folder_name, parse_selections, select
from tests.helpers.training_runs import RECIPE, metrics, run, scores, weights, without_pictures

KEY = "training.learning_rate"
#: nothing is learned with the first and the last
SELECTION = f"{KEY}=1e-9,0.05,1e-8"


@pytest.fixture(scope="module")
def choice(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("selection") / "runs"
    with without_pictures():
        select(RECIPE, ["training.epochs=4"], SELECTION, tables, out, show_progress=False)
    return out


def folder(choice: Path, value: str) -> Path:
    return choice / f"{KEY}={value}"


def predictions(run: Path) -> set[str]:
    return {path.name for path in (run / "predictions").iterdir()}


def test_the_value_with_the_best_dev_accuracy_is_chosen(choice: Path) -> None:
    dev = {
        value: json.loads((folder(choice, value) / "results.json").read_text())["dev"]["accuracy"]
        for value in ("1e-9", "0.05", "1e-8")
    }
    assert dev["0.05"] > max(dev["1e-9"], dev["1e-8"])
    TextClassifier.from_pretrained(folder(choice, "0.05") / "best")
    text = (choice / "selection.md").read_text()
    assert f"| 0.05 | {100 * dev['0.05']:.2f} % | chosen |" in text
    assert f"| 1e-9 | {100 * dev['1e-9']:.2f} % |  |" in text
    assert text.count("| chosen |") == 1


def test_test_is_scored_for_the_chosen_run_alone(choice: Path) -> None:
    assert predictions(folder(choice, "0.05")) == {"dev.tsv", "test.tsv"}
    for loser in ("1e-9", "1e-8"):
        assert predictions(folder(choice, loser)) == {"dev.tsv"}
        assert scores(folder(choice, loser)).keys() == {"dev"}
        assert "| test | not scored |" in (folder(choice, loser) / "report.md").read_text()
        assert "accuracy on test" not in (folder(choice, loser) / "best" / "README.md").read_text()


def test_finished_runs_are_not_trained_again(
    tables: Path, tmp_path: Path, no_pictures, trained: list[str], monkeypatch
) -> None:
    arguments = (RECIPE, ["training.epochs=1"], f"{KEY}=1e-9,2e-9,3e-9", tables, tmp_path / "runs")
    finish = vars(selection)["train"]

    def stop_in_the_third(settings: Any, *more: Any, **options: Any) -> Any:
        if settings.training.learning_rate == 3e-9:
            raise KeyboardInterrupt
        return finish(settings, *more, **options)

    monkeypatch.setattr(selection, "train", stop_in_the_third)
    with pytest.raises(KeyboardInterrupt):
        select(*arguments, show_progress=False)
    assert trained == [f"{KEY}=1e-9", f"{KEY}=2e-9"]
    monkeypatch.setattr(selection, "train", finish)
    trained.clear()
    values, model, results = select(*arguments, resume=True, show_progress=False)
    assert trained == [f"{KEY}=3e-9"]
    assert results.keys() == {"dev", "test"}
    assert (values, model) == ({KEY: "1e-9"}, tmp_path / "runs" / f"{KEY}=1e-9" / "best")
    page = (tmp_path / "runs" / "selection.md").read_text()
    assert "% | chosen |" in page.split("| 1e-9 |")[1].splitlines()[0]  # first of equals
    assert "% | level with the chosen one |" in page.split("| 2e-9 |")[1].splitlines()[0]


def test_a_selection_is_a_setting_and_its_values() -> None:
    assert parse_selections(["penalty.weight=1,1e-1, 1e-2", "pooling.heads = 1,5"]) == {
        "penalty.weight": ["1", "1e-1", "1e-2"],
        "pooling.heads": ["1", "5"],
    }
    commas = parse_selections(["a.b=[1,3], [5]", 'vectors.path="a,b.txt",c.txt'])
    assert commas == {"a.b": ["[1,3]", "[5]"], "vectors.path": ['"a,b.txt"', "c.txt"]}


@pytest.mark.parametrize(
    "text", ["penalty.weight", "penalty.weight=1,1", "weight=1,2", ".weight=1,2", "a.b.c=1,2"]
)
def test_a_bad_selection_is_refused_with_what_is_expected(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected section\.key=value,value") as error:
        parse_selections([text])
    assert repr(text) in str(error.value)


def test_all_values_are_checked_before_the_first_is_trained(
    tables: Path, tmp_path: Path, trained: list[str]
) -> None:
    with pytest.raises(ConfigError, match=r"training\.batch_size is 'many'"):
        select(RECIPE, [], "training.batch_size=4,many", tables, tmp_path / "runs")
    with pytest.raises(ConfigError, match="the word table would stay random"):
        select(RECIPE, [], "embedding.frozen=false,true", tables, tmp_path / "runs")
    assert trained == []
    assert not (tmp_path / "runs").exists()


def test_a_weight_is_not_chosen_for_a_penalty_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"penalty\.name is 'none'"):
        select(RECIPE, [], "penalty.weight=1,0.1", tmp_path / "data", tmp_path / "out")
    assert not (tmp_path / "out").exists()


# --- Several settings ----------------------------------------------------------------------------
RATES, HEADS = ("1e-9", "0.05"), ("1", "2")


@pytest.fixture(scope="module")
def grid(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("selection") / "grid"
    selections = [f"{KEY}={','.join(RATES)}", f"pooling.heads={','.join(HEADS)}"]
    with without_pictures():
        select(RECIPE, ["training.epochs=3"], selections, tables, out, show_progress=False)
    return out


def grid_accuracy(grid: Path, rate: str, heads: str) -> float:
    results = grid / f"{KEY}={rate},pooling.heads={heads}" / "results.json"
    return float(json.loads(results.read_text())["dev"]["accuracy"])


def test_the_report_has_every_combination(grid: Path) -> None:
    text = (grid / "selection.md").read_text()
    dev = {(rate, heads): grid_accuracy(grid, rate, heads) for rate in RATES for heads in HEADS}
    best = max(dev, key=lambda combination: dev[combination])  # the first of equals
    for (rate, heads), accuracy in dev.items():
        assert f"| {rate} | {heads} | {100 * accuracy:.2f} % |" in text
    assert f"| {best[0]} | {best[1]} | {100 * dev[best]:.2f} % | chosen |" in text
    assert best[0] == "0.05"  # nothing is learned with the other


def test_without_test_only_dev_is_scored(tables: Path, tmp_path: Path, no_pictures) -> None:
    choice = select(
        *(RECIPE, ["training.epochs=1"], f"{KEY}=1e-9,0.05", tables, tmp_path / "runs"),
        show_progress=False,
        score_tests=False,
    )
    assert choice.results.keys() == {"dev"}
    for value in ("1e-9", "0.05"):
        assert predictions(folder(tmp_path / "runs", value)) == {"dev.tsv"}
    page = (tmp_path / "runs" / "selection.md").read_text()
    assert "The test splits were not scored (`--no-test`)." in page
    assert "- test:" not in page


def test_another_selection_in_one_folder_is_refused(
    choice: Path, tables: Path, trained: list[str]
) -> None:
    before = (choice / "selection.md").read_bytes()
    with pytest.raises(TrainingError, match="another run"):
        select(RECIPE, ["training.epochs=5"], SELECTION, tables, choice, resume=True)
    assert trained == []
    for other in (f"{KEY}=0.05,0.01", "pooling.heads=1,2"):
        with pytest.raises(TrainingError, match="holds runs of another selection"):
            select(RECIPE, ["training.epochs=4"], other, tables, choice, resume=True)
    assert (choice / "selection.md").read_bytes() == before
    assert len(list(choice.glob("*/config.toml"))) == 3


# --- Selection names ------------------------------------------------------------------------------


values = st.text(min_size=1, max_size=60)


@given(st.lists(st.tuples(values, values), min_size=2, max_size=2, unique=True))
def test_other_values_have_names_that_every_system_allows_and_none_is_shared(
    combinations: list[tuple[str, str]],
) -> None:
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


def test_an_inactive_penalty_leaves_the_same_weights_whatever_its_weight(
    tables: Path, tmp_path: Path, no_pictures
) -> None:
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


def test_a_sweep_over_an_inactive_penalty_trains_one_model_and_says_so(
    tables: Path, tmp_path: Path, trained: list[str], capsys, no_pictures
) -> None:
    choice = select(
        *(RECIPE, INACTIVE, "penalty.weight=1,0.1,0.01", tables, tmp_path / "runs"),
        show_progress=False,
    )
    assert trained == ["penalty.weight=1"]
    assert choice.values == {"penalty.weight": "1"}
    reason = "not run: inactive at threshold 1e-06, same model as penalty.weight = 1"
    said = capsys.readouterr().err
    page = (tmp_path / "runs" / "selection.md").read_text()
    for weight in ("0.1", "0.01"):
        assert f"penalty.weight = {weight}: {reason}" in said
        assert f"| {weight} | - | {reason} |" in page
        assert not (tmp_path / "runs" / f"penalty.weight={weight}").exists()
    assert (tmp_path / "runs" / "penalty.weight=1" / "predictions" / "test.tsv").is_file()


def test_only_thresholds_that_cannot_wake_it_are_left_out(
    tables: Path, tmp_path: Path, trained: list[str], no_pictures
) -> None:
    selection = "penalty.threshold=1e-6,1e-8,2e-6,100"
    select(RECIPE, INACTIVE, selection, tables, tmp_path / "runs", show_progress=False)
    assert trained == ["penalty.threshold=1e-6", "penalty.threshold=100"]
    page = (tmp_path / "runs" / "selection.md").read_text()
    assert "| 2e-6 | - | not run: inactive at threshold 2e-06" in page


def test_a_penalty_that_is_off_is_trained_once_and_a_weight_of_zero_is_not_taken_for_inactive(
    tables: Path, tmp_path: Path, trained: list[str], no_pictures
) -> None:
    selections = ["penalty.name=none,parameter", "penalty.weight=1,0"]
    select(RECIPE, INACTIVE, selections, tables, tmp_path / "runs", show_progress=False)
    assert trained == [
        "penalty.name=none,penalty.weight=1",
        "penalty.name=parameter,penalty.weight=1",
        "penalty.name=parameter,penalty.weight=0",
    ]
    page = (tmp_path / "runs" / "selection.md").read_text()
    assert "| none | 0 | - | not run: penalty.name is none, same model as" in page
