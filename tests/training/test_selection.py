"""A setting is chosen on dev; only the chosen run sees test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from genpool import TextClassifier
from genpool.errors import ConfigError, TrainingError
from genpool.training import selection
from genpool.training.selection import parse_selection, select

from .small import RECIPE, outcome, run

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
    return {each.name for each in (run / "predictions").iterdir()}


def test_every_value_is_trained_in_a_folder_of_its_own(choice: Path) -> None:
    assert {each.name for each in choice.iterdir() if each.is_dir()} == {
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
    assert f"| 0.05 (chosen) | {100 * dev['0.05']:.2f} % |" in text
    assert f"| 1e-9 | {100 * dev['1e-9']:.2f} % |" in text
    assert text.count("(chosen)") == 1


def test_test_is_scored_for_the_chosen_run_alone(choice: Path) -> None:
    assert predictions(folder(choice, "0.05")) == {"dev.tsv", "test.tsv"}
    for loser in ("1e-9", "1e-8"):
        assert predictions(folder(choice, loser)) == {"dev.tsv"}
        results = json.loads((folder(choice, loser) / "results.json").read_text())
        assert results.keys() == {"dev"}
        assert "| test |" not in (folder(choice, loser) / "report.md").read_text()
        assert "accuracy on test" not in (folder(choice, loser) / "best" / "README.md").read_text()


def test_the_chosen_run_is_the_one_that_training_alone_gives(
    choice: Path, tables: Path, tmp_path: Path, no_pictures
) -> None:
    run(tables, tmp_path / "alone", "training.epochs=4")
    assert outcome(tmp_path / "alone") == outcome(folder(choice, "0.05"))
    test = json.loads((tmp_path / "alone" / "results.json").read_text())["test"]["accuracy"]
    assert f"- test: {100 * test:.2f} %" in (choice / "selection.md").read_text()


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that `select` trains in from now on."""
    found: list[str] = []
    original = selection.train

    def train(settings: Any, data: Any, out: Path, *more: Any, **options: Any) -> Any:
        found.append(out.name)
        return original(settings, data, out, *more, **options)

    monkeypatch.setattr(selection, "train", train)
    return found


def test_finished_runs_are_not_trained_again(
    tables: Path, tmp_path: Path, no_pictures, trained: list[str], monkeypatch
) -> None:
    given = (RECIPE, ["training.epochs=1"], f"{KEY}=1e-9,2e-9,3e-9", tables, tmp_path / "runs")
    finish = selection.train

    def stop_in_the_third(settings: Any, *more: Any, **options: Any) -> Any:
        if settings.training.learning_rate == 3e-9:
            raise KeyboardInterrupt
        return finish(settings, *more, **options)

    monkeypatch.setattr(selection, "train", stop_in_the_third)
    with pytest.raises(KeyboardInterrupt):
        select(*given, show_progress=False)
    assert trained == [f"{KEY}=1e-9", f"{KEY}=2e-9"]
    monkeypatch.setattr(selection, "train", finish)
    trained.clear()
    value, model, results = select(*given, resume=True, show_progress=False)
    assert trained == [f"{KEY}=3e-9"]
    assert results.keys() == {"dev", "test"}
    assert (value, model) == ("1e-9", tmp_path / "runs" / f"{KEY}=1e-9" / "best")
    page = (tmp_path / "runs" / "selection.md").read_text()
    assert "1e-9 (chosen)" in page  # first of equals
    assert "2e-9, level with it" in page


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
    assert parse_selection("penalty.weight=1,1e-1, 1e-2") == (
        "penalty.weight",
        ["1", "1e-1", "1e-2"],
    )


@pytest.mark.parametrize(
    "text",
    ["penalty.weight", "penalty.weight=", "penalty.weight=1", "weight=1,2", "a.b.c=1,2", "=1,2"],
)
def test_a_bad_selection_is_told_with_what_is_expected(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected section\.key=value,value") as error:
        parse_selection(text)
    assert repr(text) in str(error.value)


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
