"""results.json holds what a table of results needs, and runs in one process do not disturb."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from genpool import TextClassifier
from genpool.evaluation import read_predictions
from genpool.training.report import versions
from tests.helpers.training_runs import metrics, outcome, run


def test_results_hold_scores_counts_and_the_places_of_predictions(finished: Path) -> None:
    results = json.loads((finished / "results.json").read_text())
    assert results.keys() == {"dev", "test", "run"}
    for name, total in (("dev", 20), ("test", 16)):
        predictions = read_predictions(finished / results["run"]["predictions"][name])
        assert len(predictions.ids) == results[name]["total"] == total
        right = sum(map(str.__eq__, map(str, predictions.gold), predictions.predicted))
        assert results[name]["correct"] == right
        assert results[name]["accuracy"] == right / total


def test_results_hold_what_the_run_was(finished: Path) -> None:
    about = json.loads((finished / "results.json").read_text())["run"]
    last = json.loads((finished / "metrics.jsonl").read_text().splitlines()[-1])
    assert about["seed"] == 0
    assert (about["steps"], about["epochs"]) == (last["step"], last["epoch"]) == (12, 2)
    assert about["seconds"] == last["seconds"] > 0
    assert about["train_examples"] == 48
    assert about["tests_scored"] is True
    assert about["versions"] == versions()
    assert about["threads"] == torch.get_num_threads()
    model = TextClassifier.from_pretrained(finished / "best")
    total = sum(weight.numel() for weight in model.parameters())
    assert about["trained_parameters"] == total
    assert about["frozen_parameters"] == 0


def test_a_frozen_table_is_counted_apart_and_unscored_tests_are_said(
    tables: Path, tmp_path: Path, no_pictures: None
) -> None:
    words = tmp_path / "words.txt"
    words.write_text(f"film {' '.join(['1'] * 12)}\n")
    overrides = ("embedding.frozen=true", f"vectors.path={words}", "training.seed=7")
    run(tables, tmp_path / "run", *overrides, "training.epochs=1", score_tests=False)
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    model = TextClassifier.from_pretrained(tmp_path / "run" / "best")
    assert results.keys() == {"dev", "run"}
    assert results["run"]["frozen_parameters"] == 12 * len(model.text.vocabulary)
    assert results["run"]["seed"] == 7
    assert results["run"]["tests_scored"] is False
    assert results["run"]["predictions"] == {"dev": "predictions/dev.tsv"}


def test_runs_one_after_another_in_a_process_do_not_change_each_other(
    tables: Path, tmp_path: Path, no_pictures: None
) -> None:
    threads = torch.get_num_threads()
    run(tables, tmp_path / "first", "training.epochs=1")
    run(tables, tmp_path / "other", "training.epochs=1", "training.seed=5", "pooling.name=max")
    torch.manual_seed(99)  # whatever a caller does between them
    run(tables, tmp_path / "again", "training.epochs=1")
    assert outcome(tmp_path / "again") == outcome(tmp_path / "first")
    assert metrics(tmp_path / "other") != metrics(tmp_path / "first")
    assert torch.get_num_threads() == threads
