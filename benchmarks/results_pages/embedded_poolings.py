"""Generalized, max and mean pooling as students of one teacher, at equal size, with several seeds.

    for each SEED:
        genpool distil benchmarks/release/recipes/embedded-poolings.toml --data DATA \\
            --set vectors.path=GLOVE --set teacher.model=GTE --cache runs/teacher \\
            --set training.seed=SEED --out runs/generalized-SEED
        the same for max and mean, with --set pooling.name=max --set encoder.hidden_dim=360
    python -m benchmarks.results_pages.embedded_poolings generalized=runs/generalized-0/best \\
        generalized=runs/generalized-1/best ... max=runs/max-0/best ... mean=runs/mean-2/best

Folders of one pooling are in the order of their seeds. Writes the section "Second edition" of
results/embedded_poolings.md.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.pages import one_line, versions_line, write_section
from benchmarks.results_pages.embedded_quality import quality_table, spearmans
from genpool import SentenceEncoder

HEADING = "Second edition"
INTRODUCTION = """
Spearman's correlation of the cosine with people's scores, of students of gte-small that differ in
their pooling: the recipe `embedded-poolings`, one epoch of its sentences, from GloVe vectors. The
mean over {seeds} seeds, in brackets the lowest and the highest. Max and mean pooling have no
weights; their encoder is wider (`--set encoder.hidden_dim=360`), so that all have as many
parameters. STS-B dev, SICK test and STS-B test were not learned from.
"""
DIFFERENCE = """
By how much generalized pooling is ahead: the mean over the seeds, in brackets the difference of
each seed. A difference whose sign depends on the seed is no finding.
"""

#: Spearman's correlations of a student, in the order of TABLES
Scores = Sequence[float]


def score_student(folder: str) -> tuple[Scores, int]:
    """Returns the correlations of a saved encoder, and its number of parameters."""
    model = SentenceEncoder.from_pretrained(folder)
    return spearmans(model.encode), sum(weights.numel() for weights in model.parameters())


def mean_row(name: str, seeds: Sequence[Scores]) -> list[str]:
    """Returns the row of a pooling: its means, and the range over the seeds."""
    columns = np.array(seeds).T  # (tables, seeds)
    return [name, *(f"{c.mean():.4f} ({c.min():.4f} to {c.max():.4f})" for c in columns)]


def lead_row(name: str, ours: Sequence[Scores], theirs: Sequence[Scores]) -> list[str]:
    """Returns by how much our scores are higher, table by table: the mean, and every seed."""
    columns = (np.array(ours) - np.array(theirs)).T  # (tables, seeds)
    return [
        f"over {name}",
        *(f"{c.mean():+.4f} ({', '.join(f'{value:+.4f}' for value in c)})" for c in columns),
    ]


def section(students: Mapping[str, Sequence[Scores]], parameters: Mapping[str, int]) -> list[str]:
    """Returns the parts of the section; the first pooling is compared with the others."""
    first, *others = students
    titles = {name: f"{name}, {parameters[name] / 1e6:.2f} M parameters" for name in students}
    return [
        one_line(INTRODUCTION.format(seeds=len(students[first]))),
        "`python -m benchmarks.results_pages.embedded_poolings`, whose docstring has the commands "
        f"of all runs; {versions_line()}.",
        quality_table(
            "pooling", [mean_row(titles[name], seeds) for name, seeds in students.items()]
        ),
        one_line(DIFFERENCE),
        quality_table(
            "difference", [lead_row(name, students[first], students[name]) for name in others]
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("students", nargs="+", help="POOLING=FOLDER, generalized pooling first")
    students: dict[str, list[Scores]] = defaultdict(list)
    parameters: dict[str, int] = {}
    for student in parser.parse_args().students:
        name, _, folder = student.partition("=")
        scores, parameters[name] = score_student(folder)
        students[name].append(scores)
    write_section("embedded_poolings", HEADING, section(students, parameters))


if __name__ == "__main__":
    main()
