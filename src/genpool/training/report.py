"""The end of a run: the best model's predictions and scores, and a report for people."""

from __future__ import annotations

import json
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from genpool.data import READERS
from genpool.data.columns import COLUMNS_NOTE
from genpool.disk.atomic import write_text_file
from genpool.disk.files import markdown_table, percent
from genpool.errors import counted
from genpool.evaluation import AccuracyReport, Predictions, ScoreReport, write_predictions
from genpool.evaluation.pictures import learning_curve_picture
from genpool.inference.sentence_vectors import evaluation_mode, length_groups
from genpool.model import Classifier
from genpool.model.classifier import SCORE_TASK, TASK_NOTE
from genpool.text import WordTable
from genpool.training.dataset import Split
from genpool.training.heads import inactive_warning
from genpool.training.preparation import RUN_ENTRY, Prepared
from genpool.training.run_folder import RunFolder
from genpool.training.settings import PenaltySettings, RunSettings

try:
    import resource
except ModuleNotFoundError:  # not on Windows
    resource = None  # type: ignore[assignment]

#: packages whose versions decide a result
PACKAGES = ("genpool", "torch", "numpy", "tokenizers", "safetensors", "accelerate", "scipy")
#: what the heads are compared in, by the name in the metrics
HEAD_MEASURES = {
    "parameter": "parameters (W1)",
    "attention": "attention",
    "embedding": "embeddings",
}


class ScoredSplit(NamedTuple):
    """A split with the model's predictions; no report where the split has no gold labels."""

    predictions: Predictions
    report: AccuracyReport | ScoreReport | None

    @property
    def summary(self) -> str:
        """The accuracy and its confidence interval, or the correlations of scores."""
        if self.report is None:
            return "no gold labels"
        if isinstance(self.report, ScoreReport):
            return str(self.report)
        low, high = self.report.interval
        return f"{percent(self.report.accuracy)} (95 %: {100 * low:.2f} to {100 * high:.2f})"


def finish(
    settings: RunSettings, prepared: Prepared, folder: RunFolder, score_tests: bool
) -> dict[str, ScoredSplit]:
    """Scores the model with the weights that it has now, and writes the files of a finished run.

    Returns dev and, with `score_tests`, the test splits with predictions and scores, by name.
    """
    splits = {"dev": prepared.dev, **(prepared.tests if score_tests else {})}
    scored = {name: _score(settings, prepared, split) for name, split in splits.items()}
    model, objective = prepared.model, prepared.objective
    model.notes = {
        "trained on": f"{len(prepared.train):,} examples, labels {', '.join(model.labels)}",
        **{
            f"{objective.title} on {name}": one.summary
            for name, one in scored.items()
            if one.report
        },
        "seed": settings.training.seed,
        **prepared.notes,
        **({TASK_NOTE: SCORE_TASK} if settings.data.task == SCORE_TASK else {}),
        **({COLUMNS_NOTE: prepared.columns} if prepared.columns else {}),
    }
    if not folder.is_saved:
        return scored
    write_submission = READERS[settings.reader.name].write_submission
    for name, (predictions, report) in scored.items():
        write_predictions(folder.predictions / f"{name}.tsv", predictions)
        if report is None and write_submission is not None:  # the file of a competition
            answers = zip(predictions.ids, predictions.predicted, strict=True)
            write_submission(folder.predictions / f"{name}.submission.csv", answers)
    prepared.complete_model().save_pretrained(folder.best)
    lines = folder.metric_lines()
    learning_curve_picture(lines, folder.learning_curve, objective.metric, objective.title)
    about = json.loads(folder.about.read_text(encoding="utf-8"))
    write_text_file(folder.report, run_report(settings, folder, scored, lines, prepared, about))
    counts = {True: 0, False: 0}  # of parameters that are trained, or not
    for parameter in model.parameters():
        counts[parameter.requires_grad] += parameter.numel()
    # What a table of results needs to know about the run, besides its scores.
    summary = {
        "seed": settings.training.seed,
        "steps": lines[-1]["step"],
        "epochs": lines[-1]["epoch"],
        "seconds": lines[-1]["seconds"],
        "train_examples": len(prepared.train),
        "trained_parameters": counts[True],
        "frozen_parameters": counts[False],
        "tests_scored": score_tests or not prepared.tests,
        "predictions": {name: f"predictions/{name}.tsv" for name in scored},
    }
    results = scores_by_split(scored) | {RUN_ENTRY: summary | about}
    write_text_file(folder.results, json.dumps(results, indent=2) + "\n")
    shutil.rmtree(folder.checkpoints, ignore_errors=True)
    return scored


def _score(settings: RunSettings, prepared: Prepared, split: Split) -> ScoredSplit:
    labels, batch_size = prepared.model.labels, settings.training.batch_size
    scores = probabilities(prepared.model, split, prepared.table, batch_size)  # (rows, labels)
    predicted = tuple(labels[label] for label in scores.argmax(axis=1))
    gold = tuple(labels[label] if label >= 0 else None for label in split.labels)
    rows = tuple(map(tuple, scores.tolist()))
    predictions = Predictions(tuple(split.ids), gold, predicted, labels, rows)
    has_gold = bool(gold) and None not in gold
    return ScoredSplit(predictions, prepared.objective.report(split, scores) if has_gold else None)


def probabilities(
    model: Classifier, split: Split, table: WordTable, batch_size: int, rows: range | None = None
) -> NDArray[np.float32]:
    """Returns the probabilities (rows, labels) of a split, or of some rows, without dropout."""
    examples = list(range(len(split)) if rows is None else rows)
    scores = np.zeros((len(examples), len(model.labels)), dtype=np.float32)
    longest = split.lengths.max(axis=1)[examples].tolist() if examples else []
    with evaluation_mode():
        for group in length_groups(longest, batch_size):
            batch = split.batch([examples[position] for position in group], table)
            logits = model(batch.to(model.device)).logits.float()  # (group, labels)
            scores[group] = torch.softmax(logits, dim=1).cpu().numpy()
    return scores


def scores_by_split(scored: Mapping[str, ScoredSplit]) -> dict[str, Any]:
    """Returns the scores of the splits that have gold labels, ready for JSON."""
    return {name: report.to_dict() for name, (_, report) in scored.items() if report is not None}


def score_text(score: Mapping[str, Any]) -> str:
    """Returns the score of a split of results.json for people."""
    if "accuracy" in score:
        return f"accuracy: {percent(score['accuracy'])}"
    return f"Pearson: {score['pearson']:.4f}, Spearman: {score['spearman']:.4f}"


# --- What is recorded about every run ------------------------------------------------------------


def versions() -> dict[str, str]:
    """Returns the versions of Python and of the installed packages that decide a result."""
    installed = {"python": platform.python_version()}
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    return installed


def about_run(data: str | Path | None, processes: int, device: torch.device) -> dict[str, Any]:
    """Returns the content of run.json."""
    return {
        "data": None if data is None else str(data),
        "processes": processes,
        "device": str(device),
        "threads": torch.get_num_threads(),
        "machine": platform.machine(),
        "versions": versions(),
    }


def peak_memory_mb() -> float | None:
    """Returns the peak resident memory of this process in MB; None on Windows."""
    if resource is None:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


# --- The report ----------------------------------------------------------------------------------


def run_report(
    settings: RunSettings,
    folder: RunFolder,
    scored: dict[str, ScoredSplit],
    lines: Sequence[dict[str, Any]],
    prepared: Prepared,
    about: dict[str, Any],
) -> str:
    """Returns the text of report.md, from the lines of metrics.jsonl and what run.json says."""
    unscored = [name for name in prepared.tests if name not in scored]
    summary = [(name, split.summary) for name, split in scored.items()]
    summary += [(name, "not scored") for name in unscored]
    title = prepared.objective.title
    parts = [f"# Run {folder.path.name}", markdown_table(("split", title), summary)]
    if unscored:
        parts.append("The test splits were left out of this run; nothing was chosen on them.")
    last = lines[-1]
    memory = last["peak_memory_mb"]
    peak = "" if memory is None else f", peak memory {memory:,.0f} MB"
    parts.append(
        f"{counted(last['step'], 'step')}, {counted(last['epoch'], 'epoch')}, "
        f"{last['seconds']:,.0f} s. {last['tokens_per_second']:,.0f} tokens/s, "
        f"{100 * last['idle_positions']:.1f} % of the computed positions idle{peak}."
    )
    if len(lines) > 1:  # a single evaluation is no curve
        parts.append(f"![learning curve]({folder.learning_curve.name})")
    for name, split in scored.items():
        if split.report is not None:
            parts += [f"## {name}", split.report.to_markdown()]
    parts += heads_section(lines, settings.penalty)
    notes = [(name, str(text)) for name, text in prepared.notes.items()]
    parts += ["## Data and model", markdown_table(("", ""), notes)]
    parts += ["## Settings", f"```toml\n{folder.config.read_text(encoding='utf-8')}```"]
    # Only a reader that generates its examples does without a path.
    generated = about["data"] is None
    data = f"generated by {settings.reader.name}" if generated else f"`{about['data']}`"
    installed = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    parts.append(
        f"Data: {data}. {counted(about['processes'], 'process')}, "
        f"{counted(about['threads'], 'thread')}, {about['device']}. Versions: {installed}."
    )
    return "\n\n".join(parts) + "\n"


def heads_section(lines: Sequence[dict[str, Any]], penalty: PenaltySettings) -> list[str]:
    """Returns the paragraphs about heads at the best evaluation; none for a single head."""
    best = [line for line in lines if line["is_best"]][-1]
    rows = []
    for name, title in HEAD_MEASURES.items():
        if f"heads_{name}_active" in best:
            mean, closest = (best[f"heads_{name}_distance_{value}"] for value in ("mean", "min"))
            active = percent(best[f"heads_{name}_active"])
            rows.append((title, f"{mean:.4g}", f"{closest:.4g}", active))
    if not rows:
        return []
    header = ("heads", "mean distance", "closest pair", "active hinges")
    text = (
        f"Squared distances between pairs of heads at step {best['step']:,}, on a sample of dev "
        f"rows, and the share of them below the threshold {penalty.threshold:g}: the hinges that a "
        "penalty of this kind acts on."
    )
    if "penalty_gradient_share" in best:
        text += (
            f" The {penalty.name} penalty is {percent(best['penalty_gradient_share'])} of the "
            "gradient on the pooling's parameters, on a sample of the training rows."
        )
    section = ["## Heads", markdown_table(header, rows), text]
    inactive = [line for line in lines if line.get("penalty_active") == 0]
    if inactive:
        warning = inactive_warning(penalty, inactive[-1]["penalty_distance_mean"])
        section.append(f"**Warning** ({len(inactive)} of {len(lines)} evaluations): {warning}")
    return section
