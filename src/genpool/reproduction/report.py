"""The report of a reproduction: one Markdown page, and the same as one self-contained HTML page.

Its text is in templates/: report.md, report.html, and what a scale changes in the scale's own file.
"""

from __future__ import annotations

import base64
import math
import re
import statistics
import tomllib
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from string import Template
from typing import Any

from genpool.disk.atomic import write_text_file
from genpool.disk.files import markdown_table
from genpool.errors import FolderError
from genpool.evaluation.accuracy import accuracy_interval
from genpool.evaluation.pictures import HeatmapPanel, heatmap_picture, new_figure, save_figure
from genpool.model import SentenceEncoder
from genpool.reproduction import definitions
from genpool.reproduction.claims import BEYOND, CLAIMS, MISSING, Claim, row_difference
from genpool.reproduction.definitions import EXPERIMENTS, NONE, PENALTIES, Column, Experiment, Row
from genpool.reproduction.ledger import DONE, FAILED, Record, parse_overrides
from genpool.reproduction.plan import Plan
from genpool.reproduction.reproduction import Reproduction

TEMPLATES = Path(__file__).parent / "templates"
FIGURES = "figures"
GRADIENT_SHARE = "penalty_gradient_share"
NOTES: dict[str, str] = tomllib.loads((TEMPLATES / "notes.toml").read_text(encoding="utf-8"))
COLOURS = {"scalar": "#2e7d32", "vector": "#1f5f8b"}
#: styles and opacities of the curves, from few heads to many
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
OPACITIES = (0.4, 0.55, 0.7, 0.85, 1.0)
LINE: dict[str, Any] = {"marker": "o", "markersize": 3.5, "linewidth": 1.6}


def write_report(reproduction: Reproduction, sentence: str | None = None) -> Path:
    """Writes report.md, whose path is returned, and report.html from what the ledger has so far."""
    plan, sentence = reproduction.plan, sentence or definitions.PAPER["figure3"]["sentence"]
    figures = reproduction.out / FIGURES
    figures.mkdir(parents=True, exist_ok=True)
    draw_figure2(plan, figures / "figure2.png")
    draw_figure3(plan, figures / "figure3.png", sentence)
    done, needed = reproduction.count_cells()
    text = _template("report.md").substitute(
        scale=plan.scale.name,
        done=done,
        needed=needed,
        data="" if reproduction.data is None else " --data DATA",
        differences=_differences(plan),
        learning_rate=_learning_rate(plan),
        claims=_claims(plan, CLAIMS),
        beyond=_claims(plan, BEYOND),
        experiments="\n\n".join(_experiment(name, plan, figures, sentence) for name in EXPERIMENTS),
        failures=_failures(plan),
        choices=_choices(plan),
        versions=_versions(plan),
    )
    text = re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"  # what is empty leaves no gap
    page = reproduction.out / "report.md"
    write_text_file(page, text)
    write_text_file(page.with_suffix(".html"), _html(text, page.parent))
    return page


def _template(name: str) -> Template:
    return Template((TEMPLATES / name).read_text(encoding="utf-8"))


def _html(text: str, folder: Path) -> str:
    """Returns the page with its pictures inside."""
    # A dependency of rich, which genpool has anyway.
    from markdown_it import MarkdownIt

    body = MarkdownIt("commonmark").enable("table").render(text)
    body = re.sub("<table>.*?</table>", r'<div class="scroll">\g<0></div>', body, flags=re.DOTALL)

    def inside(match: re.Match[str]) -> str:
        data = base64.b64encode((folder / match[1]).read_bytes()).decode("ascii")
        return f'src="data:image/png;base64,{data}"'

    body = re.sub(r'src="([^":]+\.png)"', inside, body)
    return _template("report.html").substitute(body=body)


def _differences(plan: Plan) -> str:
    """Returns what is smaller than in the paper; empty where the scale has no such text."""
    scale = plan.scale
    if not (TEMPLATES / f"{scale.name}.md").is_file():
        return ""
    settings = {name: parse_overrides(task.overrides) for name, task in scale.tasks.items()}
    return _template(f"{scale.name}.md").substitute(
        hidden=scale.width,
        tasks="; ".join(f"{task.title} for {name}" for name, task in scale.tasks.items()),
        lengths=" and ".join(settings[name]["text.max_length"] for name in ("yelp", "age")),
        epochs=settings["snli"]["training.epochs"],
        seeds=scale.seeds,
    )


def _learning_rate(plan: Plan) -> str:
    """Returns how the learning rate was chosen; empty while it is not, or where none is."""
    rate = plan.learning_rate()
    if not rate:
        return ""
    is_trained = plan.ledger.done(plan.cell("snli", definitions.TUNED_ON[0], rate, 0)) is not None
    text = NOTES["learning_rate" if is_trained else "no_learning_rate"]
    rates, tuned = ", ".join(plan.scale.learning_rates), " and ".join(definitions.TUNED_ON)
    return text.format(rates=rates, tuned=tuned, chosen=rate[0].partition("=")[2])


def _claims(plan: Plan, claims: Sequence[Claim]) -> str:
    answers = [(claim, claim.answer_from(plan)) for claim in claims]
    rows = [
        [claim.text, claim.paper, answer.measured, f"**{answer.verdict}**"]
        for claim, answer in answers
        if answer.verdict != MISSING
    ]
    left = len(claims) - len(rows)
    table = markdown_table(["claim", "paper", "measured here", "verdict"], rows, text=4)
    note = f"{left} of {len(claims)} claims are not measured yet." if left else ""
    return f"{table if rows else ''}\n\n{note}"


def _experiment(name: str, plan: Plan, figures: Path, sentence: str) -> str:
    experiment = EXPERIMENTS[name]
    parts = [f"## {experiment.title}"]
    if not any(plan.entry(*cell) for cell in product(experiment.rows, experiment.columns)):
        parts.append("Not run yet.")
    elif experiment.baseline is not None:
        parts.append(accuracy_tables(experiment, plan))
        parts += [own_penalty_note(experiment, plan), trees_note(experiment, plan)]
        if name == "table4":
            parts += [NOTES["heads"], _heads_table(experiment, plan)]
    # A figure whose models are on another machine keeps the picture that was drawn there.
    elif not (figures / f"{name}.png").is_file():
        parts.append("Not drawn: its models are not trained yet.")
    else:
        parts.append(f"![{name}]({FIGURES}/{name}.png)")
        parts += [f"The sentence: *{sentence}*"] if name == "figure3" else []
    return "\n\n".join(parts)


def accuracy_tables(experiment: Experiment, plan: Plan) -> str:
    """Returns one table for every column of the experiment, rows as in the paper."""
    baseline = experiment.row(str(experiment.baseline))
    heads = ["model", "accuracy", "95 % interval", "paper", "seeds", "parameters", "minutes"]
    heads += [f"points over {baseline.short_title}", "p (t-test)", "p (McNemar)"]
    parts = []
    for number, column in enumerate(experiment.columns):
        rows = []
        for row in experiment.rows:
            paper = f"{row.paper[number]:.2f}".removesuffix("0") if row.paper else ""
            rows.append(_accuracy_row(row, column, paper, baseline, plan))
        title = plan.scale.tasks[column.task].title
        parts.append(f"**{column.title}** ({title})\n\n{markdown_table(heads, rows)}")
    return "\n\n".join(parts)


def _accuracy_row(row: Row, column: Column, paper: str, baseline: Row, plan: Plan) -> list[str]:
    record = plan.record(row, column)
    if record is None:
        state = "failed" if plan.entry(row, column) else "not run yet"
        return [row.title, state, "", paper, *[""] * 6]
    split = plan.split(column)
    accuracy, count = record.accuracy[split], record.counts[split]
    low, high = accuracy_interval(round(accuracy * count), count)
    points = [100 * seed.accuracy[split] for seed in plan.records(row, column)]
    seeds = str(len(points))
    if len(points) > 1:
        seeds += f": {statistics.mean(points):.2f} ± {statistics.stdev(points):.2f}"
    tests = ["", "", ""]
    difference = None if row is baseline else row_difference(plan, row, baseline, column)
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
    chosen = penalty if row.penalty == definitions.BEST else f"weight {penalty.split()[1]}"
    return f"{row.title} ({chosen}{', inactive' if record.inactive else ''})"


def _finished(experiment: Experiment, plan: Plan) -> Iterator[tuple[Row, Column, Record]]:
    for row, column in product(experiment.rows, experiment.columns):
        record = plan.record(row, column)
        if record is not None:
            yield row, column, record


def trees_note(experiment: Experiment, plan: Plan) -> str:
    """Returns where the trees of the systems that read parses came from; empty without any."""
    lines = []
    for row, _, record in _finished(experiment, plan):
        if definitions.SYSTEMS[row.system].reads_parses:
            kind = "real parses"
            if "balanced" in record.trees:
                mixed = "from the data" in record.trees or "parsed" in record.trees
                kind = "real parses, and balanced trees for the rest" if mixed else "balanced trees"
            lines.append(f"- {row.title}: {kind} ({record.trees})")
    return "\n".join([NOTES["trees"], "", *lines]) if lines else ""


def own_penalty_note(experiment: Experiment, plan: Plan) -> str:
    """Returns what the published penalties of other systems did; empty without any."""
    return "\n".join(
        NOTES["own_penalty"].format(title=row.title, share=share, column=column.title)
        for row, column, record in _finished(experiment, plan)
        if row.penalty == NONE and (share := record.heads.get(GRADIENT_SHARE)) is not None
    )


def _heads_table(experiment: Experiment, plan: Plan) -> str:
    """Returns the distances between heads of every row: redundancy as a number."""
    heads = ["task", "model", *(f"{name} distance" for name in PENALTIES)]
    heads += [f"{name} hinges active" for name in PENALTIES] + ["penalty's share of the gradient"]
    formats = {f"heads_{name}_distance_mean": "{:.3g}" for name in PENALTIES}
    formats |= {f"heads_{name}_active": "{:.1%}" for name in PENALTIES} | {GRADIENT_SHARE: "{:.1%}"}
    rows: dict[tuple[str, str], list[str]] = {}  # a task has one row, whatever its columns
    for row, column, record in _finished(experiment, plan):
        cells = [
            text.format(record.heads[name]).replace("%", " %") if name in record.heads else ""
            for name, text in formats.items()
        ]
        rows[column.task, row.title] = [column.task, _title(row, record), *cells]
    tasks = [column.task for column in experiment.columns]
    ordered = sorted(rows.values(), key=lambda cells: tasks.index(cells[0]))
    return markdown_table(heads, ordered, text=2) if rows else ""


def _failures(plan: Plan) -> str:
    failed = plan.ledger.with_status(FAILED)
    rows = [[f"{record.cell['task']}: {record.cell['system']}", record.reason] for record in failed]
    table = markdown_table(["cell", "reason"], rows, text=2)
    return f"## Cells that failed\n\n{table}" if failed else ""


def _choices(plan: Plan) -> str:
    """Returns the dev accuracy of every cell by which something was chosen on a dev set."""
    rows = []
    for record in plan.ledger.with_status(DONE):
        cell, settings = record.cell, record.settings
        heads = settings.get("pooling", {}).get("heads", "")
        penalty = str(cell["penalty"]) + (" (inactive)" if record.inactive else "")
        rate = settings.get("training", {}).get("learning_rate", "")
        rate = f"{rate:g}" if isinstance(rate, float) else rate
        dev = f"{100 * record.dev:.2f}"
        row = (cell["task"], cell["system"], heads, penalty, rate, cell["seed"], dev)
        rows.append([*map(str, row)])
    header = ["task", "system", "heads", "penalty", "learning rate", "seed", "dev"]
    return markdown_table(header, sorted(rows), text=4)


def _versions(plan: Plan) -> str:
    lines = {
        ", ".join(f"{name} {version}" for name, version in sorted(record.versions.items()))
        for record in plan.ledger.records.values()
        if record.versions
    }
    return f"Versions: {'; '.join(sorted(lines))}." if lines else ""


def draw_figure2(plan: Plan, path: Path) -> None:
    """Draws dev accuracy over the epochs, of the models that are trained."""
    experiment = EXPERIMENTS["figure2"]
    figure = new_figure(7.5, 4.6)
    axes = figure.subplots()
    longest = 0.0
    for family, system in definitions.FAMILIES.items():
        rows = [row for row in experiment.rows if row.system == system]
        records = [(row, plan.record(row, experiment.columns[0])) for row in rows]
        drawn = [(row, record) for row, record in records if record is not None]
        for (row, record), style, opacity in zip(drawn, STYLES, OPACITIES, strict=False):
            longest = max(longest, *record.dev_epochs)
            accuracies = [100 * value for value in record.dev_curve]
            look = {"linestyle": style, "alpha": opacity, "color": COLOURS[family], **LINE}
            axes.plot(record.dev_epochs, accuracies, label=row.title, **look)
    if not longest:
        return
    axes.set_xticks(range(1, math.ceil(longest) + 1))
    axes.set_xlabel("epoch")
    axes.set_ylabel("dev accuracy, %")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, ncols=2, frameon=False)
    save_figure(figure, path)


def draw_figure3(plan: Plan, path: Path, sentence: str) -> None:
    """Draws every head of one sentence, with and without a penalty, on one colour scale."""
    experiment = EXPERIMENTS["figure3"]
    panels = []
    for row in experiment.rows:
        record = plan.record(row, experiment.columns[0])
        if record is None:
            return
        runs = plan.ledger.path.parent / record.predictions
        try:
            model = SentenceEncoder.from_pretrained(runs.parent / "best")
        except FolderError:  # the figures of the runs are here, but not the models
            return
        explanation = model.explain(sentence)
        words = [token.text for token in explanation.tokens]
        name, _, weight = str(record.cell["penalty"]).partition(" ")
        title = "no penalty" if name == NONE else f"penalty on attention, weight {weight}"
        panels.append(HeatmapPanel(title, words, explanation.weights))
    heatmap_picture(panels, path)
