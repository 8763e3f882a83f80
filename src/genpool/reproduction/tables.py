"""Tables of a reproduction as Markdown: measured figures beside the paper's."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import product

from genpool.disk.markdown import markdown_table
from genpool.evaluation.accuracy import accuracy_interval
from genpool.reproduction.definition import Column, Experiment, Row, short_title
from genpool.reproduction.ledger import Record
from genpool.reproduction.plan import BEST, NONE
from genpool.reproduction.results import Results
from genpool.reproduction.systems import SYSTEMS

NOT_RUN, FAILED = "not run yet", "failed"

#: what the count of a run's trees calls balanced trees, and real parses
BALANCED, REAL = "balanced", ("from the data", "parsed")
TREES = (
    "Syntax trees of the systems that read parses. The tree of NTI is balanced by definition, and "
    "Gumbel TreeLSTM learns its own."
)


def accuracy_table(experiment: Experiment, results: Results) -> str:
    """Returns one table for every column of the experiment, rows as in the paper."""
    baseline = next((row for row in experiment.rows if row.title == experiment.baseline), None)
    parts = []
    for column in experiment.columns:
        heads = ["model", "accuracy", "95 % interval", "paper", "seeds", "parameters", "minutes"]
        if baseline is not None:
            heads += [f"points over {short_title(baseline.title)}", "p (t-test)", "p (McNemar)"]
        rows = [_row(row, column, baseline, results) for row in experiment.rows]
        title = results.plan.task(column.task).title
        parts.append(f"**{column.title}** ({title})\n\n{markdown_table(heads, rows)}")
    return "\n\n".join(parts)


def _row(row: Row, column: Column, baseline: Row | None, results: Results) -> list[str]:
    paper = row.paper.get(column.title)
    shown = "" if paper is None else f"{paper:.2f}".removesuffix("0")
    rest = [""] * (3 if baseline is not None else 0)
    record = results.record(row, column)
    if record is None:
        state = NOT_RUN if results.failure(row, column) is None else FAILED
        return [row.title, state, "", shown, "", "", "", *rest]
    split = results.split(column)
    count = record.counts[split]
    low, high = accuracy_interval(round(record.accuracy[split] * count), count)
    if baseline is not None and row is not baseline:
        rest = _tests(row, baseline, column, results)
    return [
        _title(row, record),
        f"{100 * record.accuracy[split]:.2f}",
        f"{100 * low:.2f} to {100 * high:.2f}",
        shown,
        _seeds([results.accuracy(seed, column) for seed in results.seeds(row, column)]),
        f"{record.parameters:,}",
        f"{record.seconds / 60:.1f}",
        *rest,
    ]


def _title(row: Row, record: Record) -> str:
    """Returns the title with what was chosen on the dev set."""
    if row.penalty == NONE:
        return row.title
    penalty = str(record.cell.get("penalty", NONE))
    if penalty == NONE:
        return f"{row.title} (no penalty)"
    asleep = ", asleep" if record.asleep else ""
    chosen = penalty if row.penalty == BEST else f"weight {penalty.split()[1]}"
    return f"{row.title} ({chosen}{asleep})"


def _tests(row: Row, baseline: Row, column: Column, results: Results) -> list[str]:
    difference = results.difference(row, baseline, column)
    if difference is None:
        return ["", "", ""]
    return [
        f"{difference.points:+.2f}",
        f"{difference.p_value:.2g}",
        f"{difference.mcnemar_p_value:.2g}",
    ]


def _seeds(accuracies: Sequence[float]) -> str:
    if len(accuracies) < 2:
        return str(len(accuracies))
    points = [100 * accuracy for accuracy in accuracies]
    return f"{len(points)}: {statistics.mean(points):.2f} ± {statistics.stdev(points):.2f}"


def trees_note(experiment: Experiment, results: Results) -> str:
    """Returns where the trees of the systems that read parses came from; empty without any."""
    lines = []
    for row in experiment.rows:
        if not SYSTEMS[row.system].reads_parses:
            continue
        records = [results.record(row, column) for column in experiment.columns]
        lines += [
            f"- {row.title}: {_tree_verdict(record.trees)} ({record.trees})"
            for record in records
            if record is not None
        ]
    return "\n".join([TREES, "", *lines]) if lines else ""


def _tree_verdict(trees: str) -> str:
    """Returns what kind of trees a model was trained with, from the counts of its sentences."""
    if BALANCED not in trees:
        return "real parses"
    mixed = any(source in trees for source in REAL)
    return "real parses, and balanced trees for the rest" if mixed else "balanced trees"


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
    names = ("parameter", "attention", "embedding")
    heads = ["task", "model", *(f"{name} distance" for name in names)]
    heads += [f"{name} hinges active" for name in names] + ["penalty's share of the gradient"]
    rows = []
    tasks = {column.task: column for column in experiment.columns}
    for task, column in tasks.items():
        for row in experiment.rows:
            record = results.record(row, column)
            if record is None:
                continue
            figures = record.heads
            share = figures.get("penalty_gradient_share")
            rows.append(
                [
                    task,
                    _title(row, record),
                    *(_figure(figures.get(f"heads_{name}_distance_mean")) for name in names),
                    *(_share(figures.get(f"heads_{name}_active")) for name in names),
                    "" if share is None else _share(share),
                ]
            )
    return markdown_table(heads, rows, text=2) if rows else ""


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def sweep_table(results: Results) -> str:
    """Returns the dev accuracy of every cell by which something was chosen on a dev set."""
    rows = []
    for record in results.ledger.records():
        if record.status != "done":
            continue
        cell = record.cell
        rate = record.settings.get("training", {}).get("learning_rate", "")
        rows.append(
            [
                str(cell["task"]),
                str(cell["system"]),
                str(record.settings.get("pooling", {}).get("heads", "")),
                str(cell["penalty"]) + (" (asleep)" if record.asleep else ""),
                f"{rate:g}" if isinstance(rate, float) else str(rate),
                str(cell["seed"]),
                f"{100 * record.dev:.2f}",
            ]
        )
    rows.sort()
    heads = ["task", "system", "heads", "penalty", "learning rate", "seed", "dev"]
    return markdown_table(heads, rows, text=4)
