"""What a finished run leaves: predictions, results, a report for people."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import torch

from genpool import PairClassifier, TextClassifier
from genpool.evaluation import read_predictions
from genpool.training import train
from genpool.training.report import versions
from tests.helpers.training_runs import RECIPE, metrics, run, scores, without_pictures

KEYS = {
    *("step", "epoch", "train_loss", "train_accuracy", "dev_accuracy", "learning_rate", "is_best"),
    *("seconds", "tokens_per_second", "idle_positions", "peak_memory_mb"),
    *(
        f"heads_{kind}_{value}"
        for kind in ("parameter", "attention", "embedding")
        for value in ("distance_mean", "distance_min", "active")
    ),
}
PNG = b"\x89PNG\r\n\x1a\n"


def lines_of(out: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def test_a_line_of_metrics_holds_all_that_is_promised(finished: Path) -> None:
    lines = lines_of(finished)
    assert len(lines) == 2
    for line in lines:
        assert line.keys() == KEYS
        assert line["tokens_per_second"] > 0
        assert line["peak_memory_mb"] > 10
        assert 0 <= line["train_accuracy"] <= 1
    assert [(line["step"], line["epoch"]) for line in lines] == [(6, 1), (12, 2)]


def test_predictions_are_those_of_the_best_model_in_the_order_of_the_table(
    finished: Path, tables: Path
) -> None:
    model = TextClassifier.from_pretrained(finished / "best")
    for name in ("dev", "test"):
        rows = [line.split("\t") for line in (tables / f"{name}.tsv").read_text().splitlines()[1:]]
        predictions = read_predictions(finished / "predictions" / f"{name}.tsv")
        assert list(predictions.gold) == [label for label, _ in rows]
        assert list(predictions.predicted) == model.predict([text for _, text in rows])
        assert list(predictions.ids) == [str(number) for number in range(len(rows))]
        assert predictions.labels == model.labels
        expected = model.predict_proba([text for _, text in rows])
        for row, probabilities in zip(predictions.probabilities, expected, strict=True):
            assert row == pytest.approx(probabilities, abs=1e-6)


def test_results_agree_with_the_predictions(finished: Path) -> None:
    results = scores(finished)
    assert results.keys() == {"dev", "test"}
    for name, result in results.items():
        predictions = read_predictions(finished / "predictions" / f"{name}.tsv")
        right = sum(g == p for g, p in zip(predictions.gold, predictions.predicted, strict=True))
        assert result["accuracy"] == right / len(predictions.ids)
    best = max(line["dev_accuracy"] for line in metrics(finished))
    assert results["dev"]["accuracy"] == best


def test_the_report_shows_scores_settings_versions_and_pictures(finished: Path) -> None:
    report = (finished / "report.md").read_text()
    results = json.loads((finished / "results.json").read_text())
    for name in ("dev", "test"):
        assert f"| {name} | {100 * results[name]['accuracy']:.2f} % (95 %:" in report
        assert f"![confusion](confusion-{name}.png)" in report
    assert "![learning curve](learning-curve.png)" in report
    assert "| gold \\ predicted | bad | good |" in report
    assert (finished / "config.toml").read_text() in report
    assert f"torch {torch.__version__.partition('+')[0]}" in report
    assert "12 steps, 2 epochs, " in report
    for picture in ("learning-curve.png", "confusion-dev.png", "confusion-test.png"):
        assert (finished / picture).read_bytes().startswith(PNG)


def test_the_report_has_a_table_of_heads_from_the_evaluation_of_the_best_model(
    finished: Path,
) -> None:
    lines = lines_of(finished)
    # Of equals the last: a tie counts as an improvement.
    best = sorted(lines, key=lambda line: (line["dev_accuracy"], line["step"]))[-1]
    report = (finished / "report.md").read_text()
    assert "| heads | mean distance | closest pair | active hinges |" in report
    for name, title in (("parameter", "parameters (W1)"), ("embedding", "embeddings")):
        mean, closest = (best[f"heads_{name}_distance_{value}"] for value in ("mean", "min"))
        active = 100 * best[f"heads_{name}_active"]
        assert f"| {title} | {mean:.4g} | {closest:.4g} | {active:.2f} % |" in report
    assert f"at step {best['step']}, on a sample of dev rows" in report
    assert "threshold 1: " in report
    assert "Warning" not in report and "penalty is" not in report


def test_a_system_that_counts_no_memory_is_no_obstacle(
    tables: Path, tmp_path: Path, no_pictures, monkeypatch
) -> None:
    monkeypatch.setattr("genpool.training.report.resource", None)
    run(tables, tmp_path / "run", "training.epochs=1")
    assert lines_of(tmp_path / "run")[0]["peak_memory_mb"] is None
    report = (tmp_path / "run" / "report.md").read_text()
    assert "of the computed positions idle." in report


def test_the_report_says_where_the_data_is_or_that_rules_made_it(
    finished: Path, tables: Path, tmp_path: Path, no_pictures
) -> None:
    assert f"Data: `{tables}`. " in (finished / "report.md").read_text()
    made = ("reader.name=rules", "reader.sizes=[12, 6, 3]", "training.epochs=1")
    run(None, tmp_path / "run", *made)
    assert "Data: generated by rules. " in (tmp_path / "run" / "report.md").read_text()


def test_the_best_model_says_how_it_was_made(finished: Path) -> None:
    notes = TextClassifier.from_pretrained(finished / "best").notes
    assert notes["trained on"] == "48 examples, labels bad, good"
    assert notes["seed"] == 0
    assert "accuracy on test" in notes
    assert "48 examples" in (finished / "best" / "README.md").read_text()


def test_tensorboard_gets_the_metrics_if_asked_to(
    tables: Path, tmp_path: Path, no_pictures
) -> None:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    run(tables, tmp_path / "run", "training.tensorboard=true")
    (events,) = (tmp_path / "run" / "tensorboard").iterdir()
    logged: dict[str, list[tuple[int, float]]] = {}
    for event in EventFileLoader(str(events)).Load():
        for value in event.summary.value:
            number = value.tensor.float_val[0]
            logged.setdefault(value.tag, []).append((event.step, number))
    lines = lines_of(tmp_path / "run")
    assert logged.keys() == KEYS
    steps, values = zip(*logged["dev_accuracy"], strict=True)
    assert list(steps) == [line["step"] for line in lines]
    assert list(values) == pytest.approx([line["dev_accuracy"] for line in lines], rel=1e-6)


# --- MultiNLI ------------------------------------------------------------------------------------
NLI = ("entailment", "neutral", "contradiction")


def write_multinli(folder: Path) -> Path:
    def row(number: int, genre: str) -> dict[str, str]:
        first = f"( ( A dog ) ( runs word{number % 5} ) )"
        return {
            "gold_label": NLI[number % 3],
            "sentence1_binary_parse": first,
            "sentence2_binary_parse": f"( It ( is {NLI[number % 3]} ) )",
            "pairID": f"{genre}-{number}",
            "genre": genre,
        }

    sets = {
        "1.0_train": ("fiction", "slate"),
        "1.0_dev_matched": ("fiction", "slate"),
        "1.0_dev_mismatched": ("letters", "verbatim"),
        "0.9_test_matched_unlabeled": ("fiction", "slate"),
        "0.9_test_mismatched_unlabeled": ("letters", "verbatim"),
    }
    folder.mkdir()
    for stem, genres in sets.items():
        rows = [row(number, genres[number % 2]) for number in range(12)]
        if "test" in stem:
            rows = [{**row, "gold_label": "hidden"} for row in rows]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"multinli_{stem}.jsonl").write_text(text)
    return folder


@pytest.fixture(scope="module")
def multinli(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from genpool.training import read_settings

    place = tmp_path_factory.mktemp("nli")
    settings = read_settings(RECIPE, ["reader.name=multinli", "training.epochs=1"])
    with without_pictures():
        train(settings, write_multinli(place / "data"), place / "run", show_progress=False)
    return place / "run"


def test_the_in_domain_dev_set_decides_and_the_other_is_scored(multinli: Path) -> None:
    assert PairClassifier.from_pretrained(multinli / "best").labels == NLI
    results = scores(multinli)
    assert results.keys() == {"dev", "dev_mismatched"}
    genres = {
        name: [score["genre"] for score in result["genres"]] for name, result in results.items()
    }
    assert genres == {"dev": ["fiction", "slate"], "dev_mismatched": ["letters", "verbatim"]}
    for result in results.values():
        assert sum(score["total"] for score in result["genres"]) == result["total"] == 12
        assert sum(score["correct"] for score in result["genres"]) == result["correct"]
    assert "| letters |" in (multinli / "report.md").read_text()


def test_unlabelled_test_sets_give_submission_files(multinli: Path) -> None:
    for name, genres in (
        ("test_matched", ("fiction", "slate")),
        ("test_mismatched", ("letters", "verbatim")),
    ):
        path = multinli / "predictions" / f"{name}.submission.csv"
        with path.open(newline="") as file:
            header, *rows = csv.reader(file)
        assert header == ["pairID", "gold_label"]
        assert [pair for pair, _ in rows] == [f"{genres[at % 2]}-{at}" for at in range(12)]
        predictions = read_predictions(multinli / "predictions" / f"{name}.tsv")
        assert [label for _, label in rows] == list(predictions.predicted)
        assert set(predictions.gold) == {None}
    assert not (multinli / "predictions" / "dev.submission.csv").exists()
    assert not (multinli / "confusion-test_matched.png").exists()


# --- Run summary ----------------------------------------------------------------------------------


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
    report = (tmp_path / "run" / "report.md").read_text()
    assert "| test | not scored |" in report
    assert "The test splits were left out of this run" in report
    assert not (tmp_path / "run" / "predictions" / "test.tsv").exists()
    assert "accuracy on test" not in model.notes
