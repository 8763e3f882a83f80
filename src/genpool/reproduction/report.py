"""The report of a reproduction: one Markdown page, and the same as one self-contained HTML page."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from genpool.disk.atomic import atomic_file
from genpool.disk.markdown import markdown_table
from genpool.reproduction.claims import BEYOND, CLAIMS, Claim, answers
from genpool.reproduction.definitions import EXPERIMENTS, SENTENCE
from genpool.reproduction.plan import TUNED_ON
from genpool.reproduction.report_parts import (
    accuracy_table,
    draw_figure2,
    draw_figure3,
    heads_table,
    own_penalty_note,
    sweep_table,
    trees_note,
)
from genpool.reproduction.reproduction import Reproduction
from genpool.reproduction.tasks import SCALES
from genpool.reproduction.verdicts import MISSING, Results

FIGURES = "figures"

COLUMNS = """In the tables, an accuracy and its 95 % interval are those of seed 0; the column
"seeds" has the mean of all seeds and their standard deviation. Points are a difference of
accuracies, and p (t-test) is the one-tailed paired t-test over the rows of the test set: small
where the model is better, near 1 where it is worse. Where both rows of a comparison have several
seeds, the two are of all seeds (a test row counts by the share of the seeds that are right),
otherwise of seed 0; McNemar's test is always of seed 0. Minutes are training and evaluation by
the clock, as many cells at once as `--jobs` says. A penalty is inactive if no pair of heads was
closer than its threshold in any step: its gradient is zero then.

A comparison holds with p < 0.05 and does not with p > 0.95, if it is larger than the spread over
seeds, where there are several: the standard deviation of a difference between two single runs.
Otherwise it is not decidable. A claim of several comparisons is as weak as the weakest of them."""

SMALLER = """What is smaller than in the paper, so that a cell takes minutes on one core:

- models: {hidden} dimensions for each direction of the encoder (600 on SNLI and 300 elsewhere in
  the paper), an attention network of {hidden} (600 and 300), two layers on the NLI tasks (three),
  20 character filters of each width (100), and the start of the attention has deviation 0.1 (0.01);
- systems of other papers have the same width as ours, not their published one; of those with two
  published widths, the smaller residual stacked BiLSTM has half and the larger Gumbel TreeLSTM
  twice our width, and the layers of the shortcut stacked BiLSTM have half, once and twice. The
  residual and the shortcut stacked BiLSTM have three layers, as published, where ours has two.
  Systems that differ in nothing else are one model here, such as the LSTMs of 100 and 300
  dimensions, and on yelp and age, where the encoder has one layer, max pooling and Lin et al.'s
  BiLSTM with max pooling;
- syntax trees, for the systems that read them, are made by a parser: these tables have none;
- data: {tasks};
- texts of yelp and age are truncated to {lengths} tokens;
- training: {epochs} epochs, in which the learning rate rises over a tenth of the steps and then
  falls to zero (in the paper it is halved whenever dev accuracy falls, which two epochs hardly ever
  see), with batches of 64 rows (128 on SNLI and 32 elsewhere); word vectors: 33,860 words of GloVe
  840B; one seed, and {seeds} seeds on SNLI for generalized, max, mean and scalar pooling, and for
  the shortcut stacked BiLSTM."""

LEARNING_RATE = """The learning rate was chosen before any comparison, once for all systems and
tasks: of {rates}, the one with the best mean dev accuracy of {tuned} pooling without a penalty on
SNLI: {chosen}. It was not tried on the other tasks. Everything that was chosen was chosen on a dev
set; every test set was scored with the model of the best dev epoch."""
NO_LEARNING_RATE = """The learning rate could not be chosen, because the models on SNLI that it is
chosen with have failed: the first of {rates} is used, {chosen}."""

REMARKS = """Two remarks on the paper's own figures:

- Its "p < 0.00001" for Age cannot come from a paired test over its 4,000 test rows: 82.63 against
  82.30 is a difference of 13 rows, and the smallest one-tailed p that 13 rows can give is about
  1.5e-4 (all 13 right with one model and wrong with the other, no other difference).
- The penalty on parameter matrices is inactive at its threshold of 1: with the released program's
  start the squared distance of W1 between two heads is 144 at the sizes of SNLI, so its hinge is
  zero and so is its gradient. A gain of the model that has it is not the penalty's."""

OWN_QUESTIONS = "Comparisons on SNLI's test set that the paper does not make, answered alike:"


def write_report(reproduction: Reproduction, sentence: str | None = None) -> Path:
    """Writes report.md and report.html from the ledger, with what is there so far.

    Returns the path of the Markdown page. The sentence is that of figure 3; None: the paper's.
    """
    results = Results(reproduction)
    figures = reproduction.out / FIGURES
    figures.mkdir(parents=True, exist_ok=True)
    drawn = {
        "figure2": draw_figure2(results, figures / "figure2.png"),
        "figure3": draw_figure3(results, figures / "figure3.png", sentence),
    }
    # A figure whose models are on another machine keeps the picture that was drawn there.
    drawn = {name: made or (figures / f"{name}.png").is_file() for name, made in drawn.items()}
    text = "\n\n".join(_parts(results, drawn, sentence)) + "\n"
    page = reproduction.out / "report.md"
    for path, content in ((page, text), (page.with_suffix(".html"), _html(text, page.parent))):
        with atomic_file(path) as temporary:
            temporary.write_text(content, encoding="utf-8", newline="\n")
    return page


def _parts(results: Results, drawn: dict[str, bool], sentence: str | None) -> list[str]:
    reproduction = results.reproduction
    done, needed = reproduction.count_cells()
    parts = [
        "# The paper's tables and figures",
        f"Scale: {reproduction.scale}. {done} of {needed} cells are finished.",
        f"```bash\n{_command(reproduction)}\n```",
        COLUMNS,
    ]
    if reproduction.scale == "small":
        parts += [_smaller(), _learning_rate(results)]
    parts += ["## Claims", _claims(results, CLAIMS), REMARKS]
    parts += ["### Beyond the paper", OWN_QUESTIONS, _claims(results, BEYOND)]
    for name, experiment in EXPERIMENTS.items():
        cells = list(product(experiment.rows, experiment.columns))
        parts.append(f"## {experiment.title}")
        if not any(results.record(*cell) or results.has_failed(*cell) for cell in cells):
            parts.append("Not run yet.")
            continue
        if experiment.baseline is not None:
            notes = (own_penalty_note(experiment, results), trees_note(experiment, results))
            parts += [accuracy_table(experiment, results), *notes]
        else:
            parts.append(_figure(name, drawn[name], sentence))
        if name == "table4":
            parts += [
                "How far apart the heads are, measured on dev sentences at the end of "
                "training (mean squared distance over pairs of heads):",
                heads_table(experiment, results),
            ]
    parts += _failures(results)
    parts += ["## Choices on the dev sets", "Dev accuracy of every cell.", sweep_table(results)]
    parts.append(_versions(results))
    return [part for part in parts if part]


def _command(reproduction: Reproduction) -> str:
    data = "" if reproduction.data is None else " --data DATA"
    return f"genpool reproduce all --scale {reproduction.scale}{data} --out OUT --jobs 2"


def _smaller() -> str:
    scale = SCALES["small"]
    settings = {
        name: dict(override.split("=", 1) for override in task.overrides)
        for name, task in scale.tasks.items()
    }
    return SMALLER.format(
        hidden=scale.width,
        tasks="; ".join(f"{task.title} for {name}" for name, task in scale.tasks.items()),
        lengths=" and ".join(settings[name]["text.max_length"] for name in ("yelp", "age")),
        epochs=settings["snli"]["training.epochs"],
        seeds=scale.seeds,
    )


def _learning_rate(results: Results) -> str:
    """Returns how the learning rate was chosen; empty while it is not."""
    cell = results.plan.learning_rate().cell
    if cell is None:
        return ""
    text = LEARNING_RATE if results.ledger.done(cell) else NO_LEARNING_RATE
    return text.format(
        rates=", ".join(results.plan.scale.learning_rates),
        tuned=" and ".join(TUNED_ON),
        chosen=cell.settings["training.learning_rate"],
    )


def _claims(results: Results, claims: Sequence[Claim]) -> str:
    pairs = answers(results, claims)
    rows = [
        [claim.text, claim.paper, answer.measured, f"**{answer.verdict}**"]
        for claim, answer in pairs
        if answer.verdict != MISSING
    ]
    left = len(pairs) - len(rows)
    table = markdown_table(["claim", "paper", "measured here", "verdict"], rows, text=4)
    note = f"{left} of {len(pairs)} claims are not measured yet." if left else ""
    return "\n\n".join(part for part in (table if rows else "", note) if part)


def _figure(name: str, drawn: bool, sentence: str | None) -> str:
    if not drawn:
        return "Not drawn: its models are not trained yet."
    picture = f"![{name}]({FIGURES}/{name}.png)"
    if name == "figure3":
        return f"{picture}\n\nThe sentence: *{sentence or SENTENCE}*"
    return picture


def _failures(results: Results) -> list[str]:
    failed = results.ledger.failed()
    rows = [[f"{record.cell['task']}: {record.cell['system']}", record.reason] for record in failed]
    table = markdown_table(["cell", "reason"], rows, text=2)
    return ["## Cells that failed", table] if failed else []


def _versions(results: Results) -> str:
    lines = {
        ", ".join(f"{name} {version}" for name, version in sorted(record.versions.items()))
        for record in results.ledger.records.values()
        if record.versions
    }
    return f"Versions: {'; '.join(sorted(lines))}." if lines else ""


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>The paper's tables and figures</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font: 16px/1.55 system-ui, sans-serif; margin: 2.5rem auto; padding: 0 1.5rem;
       max-width: 76rem; color: #1c2430 }}
h1 {{ font-size: 1.7rem }} h2 {{ font-size: 1.25rem; margin-top: 2.6rem }}
.scroll {{ overflow-x: auto }}
table {{ border-collapse: collapse; font-size: .86rem; margin: .8rem 0 1.4rem }}
th {{ text-align: left; border-bottom: 2px solid #1c2430; vertical-align: bottom }}
td {{ border-bottom: 1px solid #dde2e8; vertical-align: top }}
th, td {{ padding: .35rem .8rem .35rem 0 }}
td[style*="right"] {{ white-space: nowrap }}
tr:hover td {{ background: #f3f6fa }}
img {{ max-width: 100% }} code, pre {{ background: #f3f6fa; border-radius: .25rem }}
pre {{ padding: .8rem 1rem; overflow-x: auto }} code {{ padding: .1rem .25rem }}
</style></head><body>
{body}
</body></html>
"""


def _html(text: str, folder: Path) -> str:
    """Returns the page with its pictures inside."""
    # A dependency of rich, which genpool has anyway.
    from markdown_it import MarkdownIt

    body = MarkdownIt("commonmark").enable("table").render(text)
    body = body.replace("<table>", '<div class="scroll"><table>').replace(
        "</table>", "</table></div>"
    )

    def inside(match: re.Match[str]) -> str:
        data = base64.b64encode((folder / match[1]).read_bytes()).decode("ascii")
        return f'src="data:image/png;base64,{data}"'

    return PAGE.format(body=re.sub(r'src="([^":]+\.png)"', inside, body))
