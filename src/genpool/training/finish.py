"""The end of a run: the best model's predictions and scores, and a report for people."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from typing import Any

from genpool.classifier.score_methods import SCORE_TASK, TASK_NOTE
from genpool.data import READERS
from genpool.data.trained_columns import COLUMNS_NOTE
from genpool.evaluation import (
    AccuracyReport,
    Predictions,
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
) -> dict[str, ScoredSplit]:
    """Scores the model with the weights that it has now, and writes the files of a finished run.

    Args:
        settings: the settings of the run.
        prepared: the model and its splits.
        folder: the folder of the run.
        score_tests: whether the test splits are predicted too, besides dev.

    Returns:
        Dev and the test splits with their predictions and scores, by name.
    """
    tests = prepared.tests if score_tests else {}
    splits = {"dev": prepared.dev, **tests}
    scored = {name: _score(settings, prepared, split) for name, split in splits.items()}
    prepared.model.notes = _notes(settings, prepared, scored)
    if folder.is_saved:
        _write_files(settings, prepared, folder, scored)
    return scored


def scores_by_split(scored: Mapping[str, ScoredSplit]) -> dict[str, Any]:
    """Returns the scores of the splits that have gold labels, ready for JSON."""
    return {
        name: split.report.to_dict() for name, split in scored.items() if split.report is not None
    }


def _write_files(
    settings: RunSettings, prepared: Prepared, folder: RunFolder, scored: dict[str, ScoredSplit]
) -> None:
    for name, split in scored.items():
        _write_predictions(settings, folder, name, split)
    prepared.complete_model().save_pretrained(folder.best)
    lines, objective = folder.metric_lines(), prepared.objective
    learning_curve_picture(lines, folder.learning_curve, objective.metric, objective.title)
    for name, split in scored.items():
        if isinstance(split.report, AccuracyReport):
            confusion_picture(split.report, folder.confusion(name))
    folder.write(folder.report, run_report(settings, folder, scored, lines, prepared))
    summary = {RUN_ENTRY: run_summary(settings, prepared, folder, lines, list(scored))}
    results = scores_by_split(scored) | summary
    folder.write(folder.results, json.dumps(results, indent=2) + "\n")
    shutil.rmtree(folder.checkpoints, ignore_errors=True)


def _score(settings: RunSettings, prepared: Prepared, split: Split) -> ScoredSplit:
    labels, batch_size = prepared.model.labels, settings.training.batch_size
    scores = probabilities(prepared.model, split, prepared.table, batch_size)  # (examples, labels)
    predicted = tuple(labels[label] for label in scores.argmax(axis=1))
    gold = tuple(labels[label] if label >= 0 else None for label in split.labels)
    rows = tuple(tuple(float(value) for value in row) for row in scores)
    predictions = Predictions(tuple(split.ids), gold, predicted, labels, rows)
    if not gold or None in gold:
        return ScoredSplit(predictions, None)
    return ScoredSplit(predictions, prepared.objective.report(split, scores, labels))


def _notes(
    settings: RunSettings, prepared: Prepared, scored: dict[str, ScoredSplit]
) -> dict[str, Any]:
    """Returns what the model card says of the run."""
    labels, title = ", ".join(prepared.model.labels), prepared.objective.title
    scores = {
        f"{title} on {name}": split.summary
        for name, split in scored.items()
        if split.report is not None
    }
    return {
        "trained on": f"{len(prepared.train):,} examples, labels {labels}",
        **scores,
        "seed": settings.training.seed,
        **prepared.notes,
        **({TASK_NOTE: SCORE_TASK} if settings.data.task == SCORE_TASK else {}),
        **({COLUMNS_NOTE: prepared.columns} if prepared.columns else {}),
    }


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
