"""What `fit` has to say about a run: how it went, and the scores on the dev rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from genpool.disk.markdown import markdown_table
from genpool.evaluation import AccuracyReport
from genpool.evaluation.score_report import ScoreReport

if TYPE_CHECKING:
    from genpool.training.run import Run


@dataclass(frozen=True)
class FitReport:
    """The course and the scores of a fitted model; a notebook shows it as tables.

    Args:
        train_rows: rows that were trained on.
        dev: the scores on the dev rows; the best model was chosen on them.
        evaluations: step, training loss and dev score of each evaluation.
        metric: the name of the dev score in `evaluations`.
        seconds: duration of the training.
        notes: what is to be known about the data.
        is_partial: whether the training was stopped by Ctrl-C.
    """

    train_rows: int
    dev: AccuracyReport | ScoreReport
    evaluations: tuple[dict[str, Any], ...]
    metric: str
    seconds: float
    notes: dict[str, str]
    is_partial: bool = False

    @classmethod
    def from_run(cls, run: Run) -> FitReport:
        """Returns the report of a finished run."""
        metric, lines = run.objective.metric, run.folder.metric_lines()
        dev = run.scored["dev"].report
        if dev is None:
            raise TypeError("the dev rows of a run have targets")
        return cls(
            len(run.prepared.train),
            dev,
            tuple({key: line[key] for key in ("step", "train_loss", metric)} for line in lines),
            metric,
            run.state.seconds,
            dict(run.prepared.notes),
            run.is_partial,
        )

    def to_markdown(self) -> str:
        """Returns the report as Markdown."""
        return "\n\n".join([*self._course(), self.dev.to_markdown().strip()]) + "\n"

    def _course(self) -> list[str]:
        ended = " (stopped by Ctrl-C: the best model so far)" if self.is_partial else ""
        steps = self.evaluations[-1]["step"] if self.evaluations else 0
        return [
            f"{self.train_rows:,} training rows, {steps:,} steps, {self.seconds:,.0f} s{ended}",
            *([markdown_table(("", ""), list(self.notes.items()))] if self.notes else []),
        ]

    def __str__(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str:
        return markdown_html(self.to_markdown())


def markdown_html(text: str) -> str:
    """Returns paragraphs and tables of Markdown as HTML, for a notebook."""
    return "\n".join(_block_html(block) for block in text.strip().split("\n\n"))


def _block_html(block: str) -> str:
    lines = block.splitlines()
    if not lines[0].startswith("|"):
        return f"<p>{escape(block).replace('**', '')}</p>"
    rows = [_cells(line) for line in lines if not set(line) <= set("|-: ")]
    return (
        f"<table>{''.join(_row_html(row, number == 0) for number, row in enumerate(rows))}</table>"
    )


def _cells(line: str) -> list[str]:
    # A bar within a cell is written as \\|.
    plain = line.strip().strip("|").replace("\\|", "\0")
    return [cell.strip().replace("\0", "|") for cell in plain.split("|")]


def _row_html(cells: Sequence[str], is_header: bool) -> str:
    tag = "th" if is_header else "td"
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
