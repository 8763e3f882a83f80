"""The tables and pictures of a report: measured figures beside the paper's."""

from __future__ import annotations

import math
import statistics
from itertools import product
from pathlib import Path

from genpool.disk.markdown import markdown_table
from genpool.errors import FolderError
from genpool.evaluation.accuracy import accuracy_interval
from genpool.evaluation.pictures import HeatmapPanel, heatmap_picture, new_figure, save_figure
from genpool.model import SentenceEncoder
from genpool.reproduction.definitions import (
    BEST,
    EXPERIMENTS,
    FAMILIES,
    NONE,
    PENALTIES,
    SENTENCE,
    SYSTEMS,
    Column,
    Experiment,
    Row,
)
from genpool.reproduction.ledger import DONE, Record
from genpool.reproduction.verdicts import Results

TREES = (
    "Syntax trees of the systems that read parses. The tree of NTI is balanced by definition, and "
    "Gumbel TreeLSTM learns its own."
)
COLOURS = {"scalar": "#2e7d32", "vector": "#1f5f8b"}
#: styles and opacities of the curves, from few heads to many
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
OPACITIES = (0.4, 0.55, 0.7, 0.85, 1.0)


def accuracy_table(experiment: Experiment, results: Results) -> str:
    """Returns one table for every column of the experiment, rows as in the paper."""
    baseline = next(row for row in experiment.rows if row.title == experiment.baseline)
    heads = ["model", "accuracy", "95 % interval", "paper", "seeds", "parameters", "minutes"]
    heads += [f"points over {baseline.short_title}", "p (t-test)", "p (McNemar)"]
    parts = []
    for number, column in enumerate(experiment.columns):
        rows = []
        for row in experiment.rows:
            paper = f"{row.paper[number]:.2f}".removesuffix("0") if row.paper else ""
            rows.append(_accuracy_row(row, column, paper, baseline, results))
        title = results.plan.scale.tasks[column.task].title
        parts.append(f"**{column.title}** ({title})\n\n{markdown_table(heads, rows)}")
    return "\n\n".join(parts)


def _accuracy_row(
    row: Row, column: Column, paper: str, baseline: Row, results: Results
) -> list[str]:
    record = results.record(row, column)
    if record is None:
        state = "failed" if results.has_failed(row, column) else "not run yet"
        return [row.title, state, "", paper, *[""] * 6]
    split = results.split(column)
    accuracy, count = record.accuracy[split], record.counts[split]
    low, high = accuracy_interval(round(accuracy * count), count)
    points = [100 * seed.accuracy[split] for seed in results.seeds(row, column)]
    seeds = str(len(points))
    if len(points) > 1:
        seeds += f": {statistics.mean(points):.2f} ± {statistics.stdev(points):.2f}"
    tests = ["", "", ""]
    difference = None if row is baseline else results.difference(row, baseline, column)
    if difference is not None:
        p_values = (difference.p_value, difference.mcnemar_p_value)
        tests = [f"{difference.points:+.2f}", *(f"{p_value:.2g}" for p_value in p_values)]
    return [
        _title(row, record),
        f"{100 * accuracy:.2f}",
        f"{100 * low:.2f} to {100 * high:.2f}",
        paper,
        seeds,
        f"{record.parameters:,}",
        f"{record.seconds / 60:.1f}",
        *tests,
    ]


def _title(row: Row, record: Record) -> str:
    """Returns the title with what was chosen on the dev set."""
    if row.penalty == NONE:
        return row.title
    penalty = str(record.cell.get("penalty", NONE))
    if penalty == NONE:
        return f"{row.title} (no penalty)"
    chosen = penalty if row.penalty == BEST else f"weight {penalty.split()[1]}"
    return f"{row.title} ({chosen}{', inactive' if record.asleep else ''})"


def trees_note(experiment: Experiment, results: Results) -> str:
    """Returns where the trees of the systems that read parses came from; empty without any."""
    lines = []
    for row, column in product(experiment.rows, experiment.columns):
        record = results.record(row, column)
        if SYSTEMS[row.system].reads_parses and record is not None:
            kind = "real parses"
            if "balanced" in record.trees:
                mixed = "from the data" in record.trees or "parsed" in record.trees
                kind = "real parses, and balanced trees for the rest" if mixed else "balanced trees"
            lines.append(f"- {row.title}: {kind} ({record.trees})")
    return "\n".join([TREES, "", *lines]) if lines else ""


def own_penalty_note(experiment: Experiment, results: Results) -> str:
    """Returns what the published penalties of other systems did; empty without any."""
    lines = []
    for row, column in product(experiment.rows, experiment.columns):
        record = results.record(row, column)
        share = None if record is None else record.heads.get("penalty_gradient_share")
        if row.penalty == NONE and share is not None:
            lines.append(
                f"- {row.title} has the penalty of its own paper, whose gradient on the pooling "
                f"was {share:.2f} times as long as that of the whole loss at the end of the "
                f"training on {column.title}."
            )
    return "\n".join(lines)


def heads_table(experiment: Experiment, results: Results) -> str:
    """Returns the distances between heads of every row: redundancy as a number."""
    heads = ["task", "model", *(f"{name} distance" for name in PENALTIES)]
    heads += [f"{name} hinges active" for name in PENALTIES] + ["penalty's share of the gradient"]
    shares = [f"heads_{name}_active" for name in PENALTIES] + ["penalty_gradient_share"]
    rows = []
    tasks = {column.task: column for column in experiment.columns}
    for (task, column), row in product(tasks.items(), experiment.rows):
        record = results.record(row, column)
        if record is None:
            continue
        distances = [record.heads.get(f"heads_{name}_distance_mean") for name in PENALTIES]
        cells = ["" if distance is None else f"{distance:.3g}" for distance in distances]
        for name in shares:
            share = record.heads.get(name)
            cells.append("" if share is None else f"{100 * share:.1f} %")
        rows.append([task, _title(row, record), *cells])
    return markdown_table(heads, rows, text=2) if rows else ""


def sweep_table(results: Results) -> str:
    """Returns the dev accuracy of every cell by which something was chosen on a dev set."""
    rows = []
    for record in results.ledger.records.values():
        if record.status == DONE:
            cell = record.cell
            rate = record.settings.get("training", {}).get("learning_rate", "")
            rows.append(
                [
                    str(cell["task"]),
                    str(cell["system"]),
                    str(record.settings.get("pooling", {}).get("heads", "")),
                    str(cell["penalty"]) + (" (inactive)" if record.asleep else ""),
                    f"{rate:g}" if isinstance(rate, float) else str(rate),
                    str(cell["seed"]),
                    f"{100 * record.dev:.2f}",
                ]
            )
    heads = ["task", "system", "heads", "penalty", "learning rate", "seed", "dev"]
    return markdown_table(heads, sorted(rows), text=4)


def draw_figure2(results: Results, path: Path) -> bool:
    """Draws dev accuracy over the epochs; returns whether there was anything to draw."""
    experiment = EXPERIMENTS["figure2"]
    column = experiment.columns[0]
    figure = new_figure(7.5, 4.6)
    axes = figure.subplots()
    longest = 0.0
    for family, system in FAMILIES.items():
        rows = [row for row in experiment.rows if row.system == system]
        records = [(row, results.record(row, column)) for row in rows]
        drawn = [(row, record) for row, record in records if record is not None]
        for (row, record), style, opacity in zip(drawn, STYLES, OPACITIES, strict=False):
            longest = max(longest, *record.dev_epochs)
            axes.plot(
                record.dev_epochs,
                [100 * value for value in record.dev_curve],
                color=COLOURS[family],
                alpha=opacity,
                linestyle=style,
                marker="o",
                markersize=3.5,
                linewidth=1.6,
                label=row.title,
            )
    if not longest:
        return False
    axes.set_xticks(range(1, math.ceil(longest) + 1))
    axes.set_xlabel("epoch")
    axes.set_ylabel("dev accuracy, %")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, ncols=2, frameon=False)
    save_figure(figure, path)
    return True


def draw_figure3(results: Results, path: Path, sentence: str | None = None) -> bool:
    """Draws every head of one sentence, with and without a penalty, on one colour scale."""
    experiment = EXPERIMENTS["figure3"]
    panels = []
    for row in experiment.rows:
        record = results.record(row, experiment.columns[0])
        if record is None:
            return False
        folder = results.reproduction.out / record.predictions
        try:
            model = SentenceEncoder.from_pretrained(folder.parent / "best")
        except FolderError:  # the figures of the runs are here, but not the models
            return False
        explanation = model.explain(sentence or SENTENCE)
        words = [token.text for token in explanation.tokens]
        name, _, weight = str(record.cell["penalty"]).partition(" ")
        title = "no penalty" if name == NONE else f"penalty on attention, weight {weight}"
        panels.append(HeatmapPanel(title, words, explanation.weights))
    heatmap_picture(panels, path)
    return True
