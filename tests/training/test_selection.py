"""Settings are chosen on dev; only the chosen run is scored on test."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from genpool import TextClassifier
from genpool.errors import ConfigError, TrainingError
from genpool.training import selection
from genpool.training.selection import parse_selections, select
from tests.helpers.training_runs import RECIPE, outcome, run, scores

KEY = "training.learning_rate"
#: nothing is learned with the first and the last
SELECTION = f"{KEY}=1e-9,0.05,1e-8"


@pytest.fixture(scope="module")
def choice(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("selection") / "runs"
    select(RECIPE, ["training.epochs=4"], SELECTION, tables, out, show_progress=False)
    return out


def folder(choice: Path, value: str) -> Path:
    return choice / f"{KEY}={value}"


def predictions(run: Path) -> set[str]:
    return {path.name for path in (run / "predictions").iterdir()}


def test_every_value_is_trained_in_a_folder_of_its_own(choice: Path) -> None:
    assert {path.name for path in choice.iterdir() if path.is_dir()} == {
        f"{KEY}={value}" for value in ("1e-9", "0.05", "1e-8")
    }
    for value in ("1e-9", "0.05", "1e-8"):
        config = (folder(choice, value) / "config.toml").read_text()
        assert f"learning_rate = {float(value)}" in config
        TextClassifier.from_pretrained(folder(choice, value) / "best")


def test_the_value_with_the_best_dev_accuracy_is_chosen(choice: Path) -> None:
    dev = {
        value: json.loads((folder(choice, value) / "results.json").read_text())["dev"]["accuracy"]
        for value in ("1e-9", "0.05", "1e-8")
    }
    assert dev["0.05"] > max(dev["1e-9"], dev["1e-8"])
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


def test_the_chosen_run_is_the_one_that_training_alone_gives(
    choice: Path, tables: Path, tmp_path: Path, no_pictures
) -> None:
    run(tables, tmp_path / "alone", "training.epochs=4")
    assert outcome(tmp_path / "alone") == outcome(folder(choice, "0.05"))
    test = json.loads((tmp_path / "alone" / "results.json").read_text())["test"]["accuracy"]
    assert f"- test: {100 * test:.2f} %" in (choice / "selection.md").read_text()


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


def test_finished_runs_of_other_settings_are_not_taken_for_these(
    choice: Path, tables: Path, trained: list[str]
) -> None:
    before = (choice / "selection.md").read_bytes()
    with pytest.raises(TrainingError, match="another run"):
        select(RECIPE, ["training.epochs=5"], SELECTION, tables, choice, resume=True)
    assert trained == []
    assert (choice / "selection.md").read_bytes() == before


def test_finished_runs_are_refused_without_resume(choice: Path, tables: Path) -> None:
    with pytest.raises(TrainingError, match="a run that is finished"):
        select(RECIPE, ["training.epochs=4"], SELECTION, tables, choice)


def test_a_selection_is_a_setting_and_its_values() -> None:
    assert parse_selections(["penalty.weight=1,1e-1, 1e-2", "pooling.heads = 1,5"]) == {
        "penalty.weight": ["1", "1e-1", "1e-2"],
        "pooling.heads": ["1", "5"],
    }


def test_commas_within_brackets_and_quotes_belong_to_a_value() -> None:
    assert parse_selections(["embedding.character_widths=[1,3], [5]"]) == {
        "embedding.character_widths": ["[1,3]", "[5]"]
    }
    assert parse_selections(['vectors.path="a,b.txt",c.txt']) == {
        "vectors.path": ['"a,b.txt"', "c.txt"]
    }


@pytest.mark.parametrize(
    "text",
    [
        "penalty.weight",
        "penalty.weight=",
        "penalty.weight=1",
        "penalty.weight=1,1",
        "weight=1,2",
        ".weight=1,2",
        "a.b.c=1,2",
        "=1,2",
    ],
)
def test_a_bad_selection_is_refused_with_what_is_expected(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected section\.key=value,value") as error:
        parse_selections([text])
    assert repr(text) in str(error.value)


def test_all_bad_selections_are_reported_together() -> None:
    with pytest.raises(ConfigError) as error:
        parse_selections(["pooling.heads=1,2", "nonsense", "pooling.heads=3,4"])
    bad, twice = error.value.problems
    assert bad.startswith("--select 'nonsense'")
    assert twice == "--select pooling.heads is given twice; list all of its values in one."


def test_all_values_are_checked_before_the_first_is_trained(
    tables: Path, tmp_path: Path, trained: list[str]
) -> None:
    with pytest.raises(ConfigError, match=r"training\.batch_size is 'many'"):
        select(RECIPE, [], "training.batch_size=4,many", tables, tmp_path / "runs")
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
    with pytest.MonkeyPatch.context() as patch:
        for name in ("confusion_picture", "learning_curve_picture"):
            patch.setattr(f"genpool.training.report.{name}", lambda *arguments: None)
        select(RECIPE, ["training.epochs=3"], selections, tables, out, show_progress=False)
    return out


def grid_accuracy(grid: Path, rate: str, heads: str) -> float:
    results = grid / f"{KEY}={rate},pooling.heads={heads}" / "results.json"
    return float(json.loads(results.read_text())["dev"]["accuracy"])


def test_two_selections_train_every_combination(grid: Path) -> None:
    assert {entry.name for entry in grid.iterdir() if entry.is_dir()} == {
        f"{KEY}={rate},pooling.heads={heads}" for rate in RATES for heads in HEADS
    }
    for rate in RATES:
        for heads in HEADS:
            config = (grid / f"{KEY}={rate},pooling.heads={heads}" / "config.toml").read_text()
            assert f"learning_rate = {float(rate)}" in config
            assert f"heads = {heads}" in config


def test_the_report_has_every_combination_and_the_same_as_a_grid(grid: Path) -> None:
    text = (grid / "selection.md").read_text()
    dev = {(rate, heads): grid_accuracy(grid, rate, heads) for rate in RATES for heads in HEADS}
    best = max(dev, key=lambda combination: dev[combination])  # the first of equals
    for (rate, heads), accuracy in dev.items():
        mark = "chosen" if (rate, heads) == best else ""
        mark = mark or ("level with the chosen one" if accuracy == dev[best] else "")
        assert f"| {rate} | {heads} | {100 * accuracy:.2f} % | {mark} |" in text
    assert text.count("| chosen |") == 1
    assert f"| {KEY} | pooling.heads = 1 | pooling.heads = 2 |" in text
    for rate in RATES:
        cells = [
            f"**{100 * dev[rate, heads]:.2f} %**"
            if (rate, heads) == best
            else f"{100 * dev[rate, heads]:.2f} %"
            for heads in HEADS
        ]
        assert f"| {rate} | {cells[0]} | {cells[1]} |" in text
    assert best[0] == "0.05"  # nothing is learned with the other


def test_test_is_scored_for_one_combination_of_the_grid(grid: Path) -> None:
    scored = [entry for entry in grid.iterdir() if (entry / "predictions" / "test.tsv").is_file()]
    assert len(scored) == 1
    assert f"The model: `{scored[0] / 'best'}`" in (grid / "selection.md").read_text()


def test_a_grid_that_stopped_goes_on_with_what_is_missing(
    grid: Path, tables: Path, tmp_path: Path, trained: list[str], no_pictures
) -> None:
    copy = tmp_path / "grid"
    shutil.copytree(grid, copy)
    missing = f"{KEY}=0.05,pooling.heads=1"
    shutil.rmtree(copy / missing)
    selections = [f"{KEY}={','.join(RATES)}", f"pooling.heads={','.join(HEADS)}"]
    select(
        *(RECIPE, ["training.epochs=3"], selections, tables, copy),
        resume=True,
        show_progress=False,
    )
    assert trained == [missing]
    assert outcome(copy / missing)["metrics"] == outcome(grid / missing)["metrics"]
    pages = [(folder / "selection.md").read_text() for folder in (copy, grid)]
    assert pages[0].replace(str(copy), str(grid)) == pages[1]


def test_a_combination_that_cannot_be_is_refused_before_the_first_is_trained(
    tables: Path, tmp_path: Path, trained: list[str]
) -> None:
    selections = ["pooling.name=generalized,max", "pooling.heads=1,2"]
    with pytest.raises(ConfigError, match="unknown option of pooling 'max' 'heads'") as error:
        select(RECIPE, [], selections, tables, tmp_path / "runs")
    assert len(error.value.problems) == 1  # and said once
    assert trained == []


def test_a_combination_that_lacks_its_vectors_is_refused_before_the_first_is_trained(
    tables: Path, tmp_path: Path, trained: list[str]
) -> None:
    with pytest.raises(ConfigError, match="the word table would stay random"):
        select(RECIPE, [], "embedding.frozen=false,true", tables, tmp_path / "runs")
    assert trained == []


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


def test_another_selection_in_one_folder_is_refused(choice: Path, tables: Path) -> None:
    before = (choice / "selection.md").read_bytes()
    for other in (f"{KEY}=0.05,0.01", "pooling.heads=1,2"):
        with pytest.raises(TrainingError, match="holds runs of another selection"):
            select(RECIPE, ["training.epochs=4"], other, tables, choice, resume=True)
    assert (choice / "selection.md").read_bytes() == before
    assert len(list(choice.glob("*/config.toml"))) == 3
