"""What a definition of a table or a figure says: columns, rows, and the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Column:
    """A column of results: a split of a task, scored by accuracy."""

    title: str
    task: str
    split: str = "test"


@dataclass(frozen=True)
class Row:
    """A row of results.

    Attributes:
        title: as in the paper.
        system: name of the system, in `SYSTEMS`.
        paper: the paper's accuracies in percent, by the title of the column.
        penalty: "none", a penalty whose weight is chosen on the dev set, or "best" of all.
        overrides: further settings of the row.
        several_seeds: whether the row is run with several seeds, to show their spread.
    """

    title: str
    system: str
    paper: Mapping[str, float] = field(default_factory=dict)
    penalty: str = "none"
    overrides: tuple[str, ...] = ()
    several_seeds: bool = False


@dataclass(frozen=True)
class Experiment:
    """A table or a figure of the paper.

    Attributes:
        name: as on the command line, such as "table1".
        kind: "table" or "figure".
        baseline: title of the row that all others are compared with by paired tests; None: no test.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    kind: Literal["table", "figure"] = "table"
    baseline: str | None = None


def short_title(title: str) -> str:
    """Returns the title of a row without the words that most rows share."""
    return title.removeprefix("BiLSTM ").removesuffix(" pooling")
