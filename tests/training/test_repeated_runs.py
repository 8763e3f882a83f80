"""A sweep over a penalty that is inactive trains one model, and says so."""

from __future__ import annotations

from pathlib import Path

from genpool.training.selection import select
from tests.helpers.training_runs import RECIPE, metrics, run, weights

#: heads begin about 0.01 apart: at this threshold no hinge is ever active
ASLEEP = ("penalty.name=parameter", "penalty.threshold=1e-6", "training.epochs=1")


def test_an_inactive_penalty_leaves_the_same_weights_whatever_its_weight(
    tables: Path, tmp_path: Path, no_pictures
) -> None:
    for weight in ("1", "1e-3", "1e6"):
        run(tables, tmp_path / weight, *ASLEEP, f"penalty.weight={weight}")
        assert all(line["penalty_active"] == 0 for line in metrics(tmp_path / weight))
    assert weights(tmp_path / "1") == weights(tmp_path / "1e-3") == weights(tmp_path / "1e6")
    closest = min(line["penalty_distance_min"] for line in metrics(tmp_path / "1"))
    lower = ("penalty.weight=1", f"penalty.threshold={0.99 * closest}")
    run(tables, tmp_path / "closest", *ASLEEP, *lower)
    assert weights(tmp_path / "closest") == weights(tmp_path / "1")
    run(tables, tmp_path / "awake", *ASLEEP, "penalty.weight=1", "penalty.threshold=100")
    assert weights(tmp_path / "awake") != weights(tmp_path / "1")


def test_a_sweep_over_an_inactive_penalty_trains_one_model_and_says_so(
    tables: Path, tmp_path: Path, trained: list[str], capsys, no_pictures
) -> None:
    choice = select(
        *(RECIPE, ASLEEP, "penalty.weight=1,0.1,0.01", tables, tmp_path / "runs"),
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


def test_a_sweep_over_an_inactive_penalty_is_resumed_without_training(
    tables: Path, tmp_path: Path, trained: list[str], no_pictures
) -> None:
    arguments = (RECIPE, ASLEEP, "penalty.weight=1,0.1", tables, tmp_path / "runs")
    select(*arguments, show_progress=False)
    page = (tmp_path / "runs" / "selection.md").read_text()
    trained.clear()
    select(*arguments, resume=True, show_progress=False)
    assert trained == []
    assert (tmp_path / "runs" / "selection.md").read_text() == page


def test_an_awake_penalty_is_trained_with_every_weight(
    tables: Path, tmp_path: Path, trained: list[str], no_pictures
) -> None:
    overrides = [*ASLEEP, "penalty.threshold=100"]
    select(RECIPE, overrides, "penalty.weight=1,0.1", tables, tmp_path / "runs")
    assert trained == ["penalty.weight=1", "penalty.weight=0.1"]


def test_only_thresholds_that_cannot_wake_it_are_left_out(
    tables: Path, tmp_path: Path, trained: list[str], no_pictures
) -> None:
    selection = "penalty.threshold=1e-6,1e-8,2e-6,100"
    select(RECIPE, ASLEEP, selection, tables, tmp_path / "runs", show_progress=False)
    assert trained == ["penalty.threshold=1e-6", "penalty.threshold=100"]
    page = (tmp_path / "runs" / "selection.md").read_text()
    assert "| 2e-6 | - | not run: inactive at threshold 2e-06" in page


def test_in_a_grid_sleep_is_noticed_for_every_combination_of_the_other_settings(
    tables: Path, tmp_path: Path, trained: list[str], no_pictures
) -> None:
    selections = ["pooling.heads=2,3", "penalty.weight=1,0.1"]
    select(RECIPE, ASLEEP, selections, tables, tmp_path / "runs", show_progress=False)
    assert trained == ["pooling.heads=2,penalty.weight=1", "pooling.heads=3,penalty.weight=1"]
    page = (tmp_path / "runs" / "selection.md").read_text()
    assert "same model as pooling.heads = 3, penalty.weight = 1" in page


def test_a_penalty_that_is_off_is_trained_once_and_a_weight_of_zero_is_not_taken_for_inactive(
    tables: Path, tmp_path: Path, trained: list[str], no_pictures
) -> None:
    selections = ["penalty.name=none,parameter", "penalty.weight=1,0"]
    select(RECIPE, ASLEEP, selections, tables, tmp_path / "runs", show_progress=False)
    assert trained == [
        "penalty.name=none,penalty.weight=1",
        "penalty.name=parameter,penalty.weight=1",
        "penalty.name=parameter,penalty.weight=0",
    ]
    page = (tmp_path / "runs" / "selection.md").read_text()
    assert "| none | 0 | - | not run: penalty.name is none, same model as" in page
