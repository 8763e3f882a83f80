"""The report of a run, for people: scores, heads, data, settings and versions, as Markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from genpool.disk.markdown import markdown_table, percent
from genpool.errors import counted
from genpool.evaluation import AccuracyReport, Predictions
from genpool.evaluation.score_report import ScoreReport
from genpool.training.penalty import sleep_warning
from genpool.training.preparation import Prepared
from genpool.training.run_folder import RunFolder
from genpool.training.settings import PenaltySettings, RunSettings

#: what the heads are compared in, by the name in the metrics
HEAD_MEASURES = {
    "parameter": "parameters (W1)",
    "attention": "attention",
    "embedding": "embeddings",
}


@dataclass(frozen=True)
class ScoredSplit:
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


def score_text(score: Mapping[str, Any]) -> str:
    """Returns the score of a split of results.json for people."""
    if "accuracy" in score:
        return f"accuracy: {percent(score['accuracy'])}"
    return f"Pearson: {score['pearson']:.4f}, Spearman: {score['spearman']:.4f}"


def run_report(
    settings: RunSettings,
    folder: RunFolder,
    scored: dict[str, ScoredSplit],
    lines: Sequence[dict[str, Any]],
    prepared: Prepared,
) -> str:
    """Returns the text of report.md.

    Args:
        settings: the settings of the run.
        folder: the folder of the run.
        scored: the splits that were scored, by name.
        lines: the lines of metrics.jsonl.
        prepared: the data and its notes.
    """
    unscored = [name for name in prepared.tests if name not in scored]
    summary = [(name, split.summary) for name, split in scored.items()]
    summary += [(name, "not scored") for name in unscored]
    title = prepared.objective.title
    parts = [f"# Run {folder.path.name}", markdown_table(("split", title), summary)]
    if unscored:
        parts.append("The test splits were left out of this run; nothing was chosen on them.")
    parts.append(_course(lines[-1]))
    if len(lines) > 1:  # a single evaluation is no curve
        parts.append(f"![learning curve]({folder.learning_curve.name})")
    for name, split in scored.items():
        if split.report is not None:
            parts += [f"## {name}", split.report.to_markdown()]
            if prepared.objective.has_classes:
                parts.append(f"![confusion]({folder.confusion(name).name})")
    parts += heads_section(lines, settings.penalty)
    notes = [(name, str(text)) for name, text in prepared.notes.items()]
    parts += ["## Data and model", markdown_table(("", ""), notes)]
    parts += ["## Settings", f"```toml\n{folder.config.read_text(encoding='utf-8')}```"]
    parts.append(_origin(settings, folder))
    return "\n\n".join(parts) + "\n"


def best_line(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the evaluation that the best model is from."""
    marked = [line for line in lines if line.get("is_best")]
    if marked:
        return marked[-1]
    # Runs of genpool 0.1 have no mark. Of equals the last: a tie counts as an improvement.
    highest = max(line["dev_accuracy"] for line in lines)
    return [line for line in lines if line["dev_accuracy"] == highest][-1]


def heads_section(lines: Sequence[dict[str, Any]], penalty: PenaltySettings) -> list[str]:
    """Returns the paragraphs about heads; empty for a model with one head.

    The table is of the evaluation that the best model is from.
    """
    best = best_line(lines)
    rows = [
        (
            title,
            f"{best[f'heads_{name}_distance_mean']:.4g}",
            f"{best[f'heads_{name}_distance_min']:.4g}",
            percent(best[f"heads_{name}_active"]),
        )
        for name, title in HEAD_MEASURES.items()
        if f"heads_{name}_active" in best
    ]
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
    asleep = [line for line in lines if line.get("penalty_active") == 0]
    if asleep:
        warning = sleep_warning(penalty, asleep[-1]["penalty_distance_mean"])
        section.append(f"**Warning** ({len(asleep)} of {len(lines)} evaluations): {warning}")
    return section


def _course(last: dict[str, Any]) -> str:
    """Returns how long the run took, from its last evaluation."""
    memory = last["peak_memory_mb"]
    peak = "" if memory is None else f", peak memory {memory:,.0f} MB"
    return (
        f"{counted(last['step'], 'step')}, {counted(last['epoch'], 'epoch')}, "
        f"{last['seconds']:,.0f} s. "
        f"{last['tokens_per_second']:,.0f} tokens/s, "
        f"{100 * last['idle_positions']:.1f} % of the computed positions idle{peak}."
    )


def _origin(settings: RunSettings, folder: RunFolder) -> str:
    """Returns where the data is from, and the machine and versions."""
    about = json.loads(folder.about.read_text(encoding="utf-8"))
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    # Only a reader that generates its examples does without a path.
    generated = about["data"] is None
    data = f"generated by {settings.reader.name}" if generated else f"`{about['data']}`"
    return (
        f"Data: {data}. {counted(about['processes'], 'process')}, "
        f"{counted(about['threads'], 'thread')}, {about['device']}. Versions: {versions}."
    )
