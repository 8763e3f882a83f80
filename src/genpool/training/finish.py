"""The end of a run: the best model's predictions, scores, and a report for people."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import Any

from genpool.data import write_submission
from genpool.evaluation import (
    AccuracyReport,
    Predictions,
    accuracy_report,
    confusion_picture,
    learning_curve_picture,
    write_predictions,
)
from genpool.training.dataset import Split
from genpool.training.preparation import Prepared
from genpool.training.run_folder import RunFolder
from genpool.training.scoring import probabilities
from genpool.training.settings import RunSettings


@dataclass(frozen=True)
class Scored:
    """A split with the model's answers; no report where the split has no gold labels."""

    predictions: Predictions
    report: AccuracyReport | None


def finish(
    settings: RunSettings, prepared: Prepared, folder: RunFolder, score_tests: bool
) -> dict[str, Any]:
    """Predicts dev, and every test split if wanted, with the model as it is now; writes all files.

    A run that is one of several to choose from leaves the test splits alone.
    """
    model, labels = prepared.model, prepared.model.labels
    tests = prepared.tests if score_tests else {}
    scored = {
        name: _score(settings, prepared, split)
        for name, split in {"dev": prepared.dev, **tests}.items()
    }
    for name, each in scored.items():
        write_predictions(folder.predictions / f"{name}.tsv", each.predictions)
        if each.report is None and settings.reader.name == "multinli":
            answers = zip(each.predictions.ids, each.predictions.predicted, strict=True)
            write_submission(folder.predictions / f"{name}.submission.csv", answers)
    lines = folder.metric_lines()
    results: dict[str, Any] = {
        name: each.report.to_dict() for name, each in scored.items() if each.report is not None
    }
    summary = {name: _percent(each.report) for name, each in scored.items() if each.report}
    model.notes = {
        "trained on": f"{len(prepared.train):,} examples, labels {', '.join(labels)}",
        **{f"accuracy on {name}": text for name, text in summary.items()},
        "seed": settings.training.seed,
        **prepared.notes,
    }
    model.save_pretrained(folder.best)
    _write_report(folder, scored, lines, prepared, summary)
    folder.write(folder.results, json.dumps(results, indent=2) + "\n")
    shutil.rmtree(folder.checkpoints, ignore_errors=True)
    return results


def _score(settings: RunSettings, prepared: Prepared, split: Split) -> Scored:
    labels = prepared.model.labels
    found = probabilities(prepared.model, split, prepared.table, settings.training.batch_size)
    predicted = tuple(labels[number] for number in found.argmax(axis=1))
    gold = tuple(labels[number] if number >= 0 else None for number in split.labels)
    rows = tuple(tuple(float(value) for value in row) for row in found)
    predictions = Predictions(tuple(split.ids), gold, predicted, labels, rows)
    known = [label for label in gold if label is not None]
    if not known or len(known) < len(gold):
        return Scored(predictions, None)
    genres = split.genres if any(split.genres) else None
    return Scored(predictions, accuracy_report(known, predicted, labels, genres))


def _percent(report: AccuracyReport) -> str:
    low, high = report.interval
    return f"{100 * report.accuracy:.2f} % (95 %: {100 * low:.2f} to {100 * high:.2f})"


def _write_report(
    folder: RunFolder,
    scored: dict[str, Scored],
    lines: list[dict[str, Any]],
    prepared: Prepared,
    summary: dict[str, str],
) -> None:
    learning_curve_picture(lines, folder.path / "learning-curve.png")
    about = json.loads(folder.about.read_text(encoding="utf-8"))
    parts = [f"# Run {folder.path.name}\n"]
    parts.append("| split | accuracy |\n|---|---|")
    parts += [f"| {name} | {text} |" for name, text in summary.items()]
    last = lines[-1]
    parts.append(
        f"\n{last['step']:,} steps, {last['epoch']} epochs, {last['seconds']:,.0f} s. "
        f"{last['tokens_per_second']:,.0f} tokens/s, "
        f"{100 * last['idle_positions']:.1f} % of the computed positions idle, "
        f"{last['peak_memory_mb']:,.0f} MB at the peak.\n"
    )
    parts.append("![learning curve](learning-curve.png)\n")
    for name, each in scored.items():
        if each.report is None:
            continue
        picture = f"confusion-{name}.png"
        confusion_picture(each.report, folder.path / picture)
        parts.append(f"## {name}\n\n{each.report.to_markdown()}\n\n![confusion]({picture})\n")
    parts.append("## Data and model\n\n| | |\n|---|---|")
    parts += [f"| {name} | {text} |" for name, text in prepared.notes.items()]
    parts.append(f"\n## Settings\n\n```toml\n{folder.config.read_text(encoding='utf-8')}```\n")
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    # Only a recipe whose examples are made by rules can do without a place.
    data = "generated by rules" if about["data"] is None else f"`{about['data']}`"
    parts.append(
        f"Data: {data}. {about['processes']} process(es), {about['threads']} threads, "
        f"{about['device']}. Versions: {versions}.\n"
    )
    folder.write(folder.report, "\n".join(parts))
