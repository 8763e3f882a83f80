"""The embedded encoder beside encoders with max and mean pooling, trained the same way.

    genpool distil embedded --data DATA --set vectors.path=GLOVE --out runs/embedded
    genpool distil embedded-second --data DATA --set training.start=runs/embedded/best
    for each of max and mean:
        genpool distil embedded --data DATA --set vectors.path=GLOVE --out runs/max \\
            --set pooling.name=max --set encoder.hidden_dim=352
        genpool distil embedded-second --data DATA --set training.start=runs/max/best \\
            --out runs/max-second
    python -m benchmarks.embedded_poolings generalized=runs/embedded-second/best \\
        max=runs/max-second/best mean=runs/mean-second/best [--short NAME=FOLDER ...]

Writes results/embedded_poolings.md. --short: students of a short schedule, in another table.
"""

from __future__ import annotations

import argparse
import textwrap
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from benchmarks.embedded_quality import TABLES, scores_and_cosines
from genpool import SentenceEncoder
from genpool.training.tracking import versions

PAGE = Path(__file__).parents[1] / "results" / "embedded_poolings.md"
RESAMPLES = 2000

WHOLE = """
Spearman's correlation of the cosine with people's scores, of students of MiniLM-L6 that differ in
their pooling. All were taught by both recipes, `embedded` (4 epochs, 450,164 sentences) and
`embedded-second` (3 epochs, 155,210 sentences), with seed 0; STS-B dev chose the epoch. Generalized
pooling has the options of the recipe. Max and mean pooling have none (`--set pooling.name=max --set
encoder.hidden_dim=352`): their encoder is wider, so that all have as many parameters. The embedded
encoder is the generalized one with fewer words, in 8 bits. It was taught by an earlier state of
the code, in which dropout drew other numbers.
"""
DIFFERENCE = """
By how much generalized pooling is ahead, with the 95 % interval of a paired bootstrap over the
pairs of the table (2,000 resamples, seed 0). It says how sure the difference of these students is
on other pairs, not how another seed would come out.
"""
SHORT = """
A short schedule, on which poolings were tried: three tables alone (STS-B, SICK and SNLI train,
128,531 sentences), 2 epochs of the first recipe, seed 0. Poolings that are level here, or ahead,
need not be so after the whole schedule; the recipe was not changed for them.
"""


def ranks_correlate(scores: np.ndarray, cosines: np.ndarray) -> float:
    return float(np.corrcoef(rankdata(scores), rankdata(cosines))[0, 1])


def interval(scores: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """95 % interval of the difference of two Spearman correlations with the same scores."""
    random = np.random.default_rng(0)
    found = []
    for _ in range(RESAMPLES):
        some = random.integers(0, len(scores), len(scores))
        found.append(
            ranks_correlate(scores[some], ours[some]) - ranks_correlate(scores[some], theirs[some])
        )
    low, high = np.percentile(found, [2.5, 97.5])
    return float(low), float(high)


class Student:
    """An encoder by name, with its cosines on every table."""

    def __init__(self, given: str) -> None:
        self.name, _, folder = given.rpartition("=")
        model = SentenceEncoder.from_pretrained(folder)
        self.parameters = sum(each.numel() for each in model.parameters())
        self.pairs = {
            title: scores_and_cosines(table, model.encode) for title, table in TABLES.items()
        }

    def row(self) -> str:
        cells = [f"{ranks_correlate(*self.pairs[title]):.4f}" for title in TABLES]
        return f"| {self.name}, {self.parameters / 1e6:.2f} M parameters | {' | '.join(cells)} |"

    def lead_over(self, other: Student) -> str:
        cells = []
        for title in TABLES:
            scores, ours = self.pairs[title]
            theirs = other.pairs[title][1]
            lead = ranks_correlate(scores, ours) - ranks_correlate(scores, theirs)
            low, high = interval(scores, ours, theirs)
            cells.append(f"{lead:+.4f} ({low:+.4f} to {high:+.4f})")
        return f"| over {other.name} | {' | '.join(cells)} |"


def table(title: str, rows: list[str]) -> list[str]:
    return [f"| {title} | {' | '.join(TABLES)} |", "|---|" + "---|" * len(TABLES), *rows, ""]


def paragraph(text: str) -> list[str]:
    return [" ".join(textwrap.dedent(text).split()), ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("students", nargs="+", help="NAME=FOLDER, generalized pooling first")
    parser.add_argument("--short", nargs="*", default=[])
    chosen = parser.parse_args()
    lines = ["# Poolings of the embedded encoder", "", *paragraph(WHOLE)]
    lines += [
        "`python -m benchmarks.embedded_poolings`, at the head of which are the commands of all "
        "runs; " + ", ".join(f"{name} {number}" for name, number in versions().items()) + ".",
        "",
    ]
    students = [Student(each) for each in chosen.students]
    lines += table("pooling", [each.row() for each in students])
    lines += paragraph(DIFFERENCE)
    lines += table("difference", [students[0].lead_over(each) for each in students[1:]])
    if chosen.short:
        lines += paragraph(SHORT)
        lines += table("pooling", [Student(each).row() for each in chosen.short])
    text = "\n".join(lines)
    print(text)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
