"""The embedded encoder beside encoders with max and mean pooling, trained the same way.

    genpool distil embedded --data DATA --set vectors.path=GLOVE --out runs/embedded
    genpool distil embedded-second --data DATA --set training.start=runs/embedded/best
    for each of max and mean:
        genpool distil embedded --data DATA --set vectors.path=GLOVE --out runs/max \\
            --set pooling.name=max --set encoder.hidden_dim=352
        genpool distil embedded-second --data DATA --set training.start=runs/max/best \\
            --out runs/max-second
    python -m benchmarks.results_pages.embedded_poolings generalized=runs/embedded-second/best \\
        max=runs/max-second/best mean=runs/mean-second/best [--short NAME=FOLDER ...]

Writes results/embedded_poolings.md. --short: students of a short schedule, in another table.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.stats import rankdata

from benchmarks.pages import one_line, versions_line, write_page
from benchmarks.results_pages.embedded_quality import (
    TABLES,
    Array,
    quality_table,
    scores_and_cosines,
)
from genpool import SentenceEncoder

RESAMPLES = 2000

FULL_SCHEDULE = """
Spearman's correlation of the cosine with people's scores, of students of MiniLM-L6 that differ in
their pooling. All were taught by both recipes, `embedded` (4 epochs, 450,164 sentences) and
`embedded-second` (3 epochs, 155,210 sentences), with seed 0; STS-B dev chose the epoch. Generalized
pooling has the options of the recipe. Max and mean pooling have none (`--set pooling.name=max --set
encoder.hidden_dim=352`): their encoder is wider, so that all have as many parameters. The embedded
encoder is the generalized one with fewer words, in 8 bits. It was taught by an earlier state of
the code, in which dropout drew other masks.
"""
DIFFERENCE = """
By how much generalized pooling is ahead, with the 95 % interval of a paired bootstrap over the
pairs of the table (2,000 resamples, seed 0). It says how sure the difference of these students is
on other pairs, not how another seed would come out.
"""
SHORT_SCHEDULE = """
A short schedule, on which poolings were tried: three tables alone (STS-B, SICK and SNLI train,
128,531 sentences), 2 epochs of the first recipe, seed 0. Poolings that are level here, or ahead,
need not be so after the full schedule; the recipe was not changed for them.
"""


def spearman(scores: Array, cosines: Array) -> float:
    return float(np.corrcoef(rankdata(scores), rankdata(cosines))[0, 1])


def lead(scores: Array, ours: Array, theirs: Array) -> float:
    """Returns the difference of two Spearman correlations with the same scores."""
    return spearman(scores, ours) - spearman(scores, theirs)


def lead_interval(scores: Array, ours: Array, theirs: Array) -> tuple[float, float]:
    """Returns the 95 % interval of `lead`, by a paired bootstrap."""
    random = np.random.default_rng(0)
    leads = []
    for _ in range(RESAMPLES):
        rows = random.integers(0, len(scores), len(scores))
        leads.append(lead(scores[rows], ours[rows], theirs[rows]))
    low, high = np.percentile(leads, [2.5, 97.5])
    return float(low), float(high)


class Student:
    """An encoder by name, with its cosines on every table."""

    def __init__(self, name_and_folder: str) -> None:
        self.name, _, folder = name_and_folder.rpartition("=")
        model = SentenceEncoder.from_pretrained(folder)
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        self.pairs = {
            title: scores_and_cosines(table, model.encode) for title, table in TABLES.items()
        }

    def row(self) -> list[str]:
        return [
            f"{self.name}, {self.parameters / 1e6:.2f} M parameters",
            *(f"{spearman(*self.pairs[title]):.4f}" for title in TABLES),
        ]

    def lead_over(self, other: Student) -> list[str]:
        cells = [f"over {other.name}"]
        for title in TABLES:
            scores, ours = self.pairs[title]
            theirs = other.pairs[title][1]
            low, high = lead_interval(scores, ours, theirs)
            cells.append(f"{lead(scores, ours, theirs):+.4f} ({low:+.4f} to {high:+.4f})")
        return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("students", nargs="+", help="NAME=FOLDER, generalized pooling first")
    parser.add_argument("--short", nargs="*", default=[])
    options = parser.parse_args()
    first, *others = [Student(student) for student in options.students]
    parts = [
        "# Poolings of the embedded encoder",
        one_line(FULL_SCHEDULE),
        "`python -m benchmarks.results_pages.embedded_poolings`, whose docstring has the commands "
        f"of all runs; {versions_line()}.",
        quality_table("pooling", [student.row() for student in (first, *others)]),
        one_line(DIFFERENCE),
        quality_table("difference", [first.lead_over(student) for student in others]),
    ]
    if options.short:
        parts += [
            one_line(SHORT_SCHEDULE),
            quality_table("pooling", [Student(student).row() for student in options.short]),
        ]
    write_page("embedded_poolings", parts)


if __name__ == "__main__":
    main()
