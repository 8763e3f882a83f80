"""The page about a selection: every combination with its dev accuracy, and the choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genpool.disk.markdown import markdown_table, percent
from genpool.training.report import score_text


@dataclass(frozen=True)
class ReportRow:
    """A combination of values, by setting: its dev accuracy, or why it has none."""

    values: Mapping[str, str]
    dev_accuracy: float | None = None
    note: str = ""


def selection_report(
    axes: Mapping[str, Sequence[str]],
    rows: Sequence[ReportRow],
    chosen: Mapping[str, str],
    model: Path,
    scores: Mapping[str, Any],
    tests_scored: bool,
) -> str:
    """Returns the text of selection.md.

    Args:
        axes: The values of each setting that was varied.
        rows: All combinations.
        chosen: The values of the chosen one.
        model: The folder of its model.
        scores: Its scores, by split.
        tests_scored: Whether the test splits were to be scored.
    """
    best = max(row.dev_accuracy for row in rows if row.dev_accuracy is not None)
    table = [
        [*row.values.values(), _percent_or_dash(row), _note(row, chosen, best)] for row in rows
    ]
    title = "accuracy" if "accuracy" in scores["dev"] else "Spearman"
    parts = [f"# Choice of {' and '.join(axes)} by dev {title}"]
    parts.append(markdown_table([*axes, f"dev {title}", "note"], table))
    if len(axes) == 2:
        parts += ["## The same as a grid", _grid(axes, rows, chosen)]
    parts.append(f"The model: `{model}`")
    tests = [
        f"- {name}: {score_text(score).removeprefix('accuracy: ')}"
        for name, score in scores.items()
        if name != "dev"
    ]
    if not tests_scored:
        parts.append("The test splits were not scored (`--no-test`).")
    elif tests:
        parts += ["Scored once, after the choice:", "\n".join(tests)]
    return "\n\n".join(parts) + "\n"


def _percent_or_dash(row: ReportRow) -> str:
    return "-" if row.dev_accuracy is None else percent(row.dev_accuracy)


def _note(row: ReportRow, chosen: Mapping[str, str], best: float) -> str:
    if row.values == chosen:
        return "chosen"
    return "level with the chosen one" if row.dev_accuracy == best else row.note


def _grid(
    axes: Mapping[str, Sequence[str]], rows: Sequence[ReportRow], chosen: Mapping[str, str]
) -> str:
    """Returns the dev accuracies with the first setting down and the second across."""
    (down, first), (across, second) = axes.items()
    cells = {
        (row.values[down], row.values[across]): f"**{_percent_or_dash(row)}**"
        if row.values == chosen
        else _percent_or_dash(row)
        for row in rows
    }
    header = [down, *(f"{across} = {value}" for value in second)]
    return markdown_table(
        header, [[value, *(cells[value, other] for other in second)] for value in first]
    )
