"""The end of a run: the best model's predictions and scores, and a report for people."""

from __future__ import annotations

import json
import shutil
from typing import Any

from genpool.data.readers import READERS
from genpool.evaluation import (
    Predictions,
    accuracy_report,
    confusion_picture,
    learning_curve_picture,
    write_predictions,
)
from genpool.training.dataset import Split
from genpool.training.preparation import RUN_ENTRY, Prepared
from genpool.training.report import ScoredSplit, run_report
from genpool.training.run_folder import RunFolder
from genpool.training.run_summary import run_summary
from genpool.training.scoring import probabilities
from genpool.training.settings import RunSettings


def finish(
    settings: RunSettings, prepared: Prepared, folder: RunFolder, score_tests: bool
) -> dict[str, Any]:
    """Scores the model with the weights that it has now, and writes the files of a finished run.

    Args:
        settings: the settings of the run.
        prepared: the model and its splits.
        folder: the folder of the run.
        score_tests: whether the test splits are predicted too, besides dev.

    Returns:
        The scores of dev and of every labelled test split, by name.
    """
    tests = prepared.tests if score_tests else {}
    splits = {"dev": prepared.dev, **tests}
    scored = {name: _score(settings, prepared, split) for name, split in splits.items()}
    for name, split in scored.items():
        _write_predictions(settings, folder, name, split)
    _save_best(settings, prepared, folder, scored)
    lines = folder.metric_lines()
    learning_curve_picture(lines, folder.learning_curve)
    for name, split in scored.items():
        if split.report is not None:
            confusion_picture(split.report, folder.confusion(name))
    unscored = [] if score_tests else list(prepared.tests)
    folder.write(folder.report, run_report(settings, folder, scored, unscored, lines, prepared))
    results: dict[str, Any] = {
        name: split.report.to_dict() for name, split in scored.items() if split.report is not None
    }
    summary = {RUN_ENTRY: run_summary(settings, prepared, folder, lines, list(scored))}
    folder.write(folder.results, json.dumps(results | summary, indent=2) + "\n")
    shutil.rmtree(folder.checkpoints, ignore_errors=True)
    return results


def _score(settings: RunSettings, prepared: Prepared, split: Split) -> ScoredSplit:
    labels, batch_size = prepared.model.labels, settings.training.batch_size
    scores = probabilities(prepared.model, split, prepared.table, batch_size)  # (examples, labels)
    predicted = tuple(labels[label] for label in scores.argmax(axis=1))
    gold = tuple(labels[label] if label >= 0 else None for label in split.labels)
    rows = tuple(tuple(float(value) for value in row) for row in scores)
    predictions = Predictions(tuple(split.ids), gold, predicted, labels, rows)
    known = [label for label in gold if label is not None]
    if not known or len(known) < len(gold):
        return ScoredSplit(predictions, None)
    genres = split.genres if any(split.genres) else None
    return ScoredSplit(predictions, accuracy_report(known, predicted, labels, genres))


def _write_predictions(
    settings: RunSettings, folder: RunFolder, name: str, split: ScoredSplit
) -> None:
    """Writes the predictions of a split; of one without labels, the competition's file too."""
    predictions = split.predictions
    write_predictions(folder.predictions / f"{name}.tsv", predictions)
    write_submission = READERS[settings.reader.name].write_submission
    if split.report is None and write_submission is not None:
        answers = zip(predictions.ids, predictions.predicted, strict=True)
        write_submission(folder.predictions / f"{name}.submission.csv", answers)


def _save_best(
    settings: RunSettings, prepared: Prepared, folder: RunFolder, scored: dict[str, ScoredSplit]
) -> None:
    """Saves the model with its scores on its card."""
    model = prepared.model
    accuracies = {
        f"accuracy on {name}": split.accuracy
        for name, split in scored.items()
        if split.report is not None
    }
    model.notes = {
        "trained on": f"{len(prepared.train):,} examples, labels {', '.join(model.labels)}",
        **accuracies,
        "seed": settings.training.seed,
        **prepared.notes,
    }
    model.save_pretrained(folder.best)
