"""What is trained, as data: the scales with their tasks (scales.toml), the systems (systems.toml),
and the paper's tables, figures and claims (paper.toml). Each file says what its fields mean.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: a row's penalty: "none", one of PENALTIES with its weight chosen on dev, or the best of all
BEST, NONE = "best", "none"
PENALTIES = ("parameter", "attention", "embedding")
#: systems by which the learning rate is chosen, for all systems
TUNED_ON = ("max", "generalized")


@dataclass(frozen=True)
class Task:
    """A data set and the settings in which all systems are trained on it."""

    title: str
    recipe: str
    overrides: Sequence[str] = ()
    needs: Sequence[str] = ()
    prepare: Mapping[str, Any] = field(default_factory=dict)
    splits: Mapping[str, str] = field(default_factory=lambda: {"test": "test"})


@dataclass(frozen=True)
class Scale:
    """The tasks of a scale, and what is tried on their dev sets."""

    name: str
    tasks: dict[str, Task]
    width: int = 0
    parser: str | None = None
    decides: bool = True
    vectors: str | None = None
    learning_rates: Sequence[str] = ()
    weights: Sequence[str] = ("1", "1e-1", "1e-2", "1e-3", "1e-4")
    seeds: int = 5


@dataclass(frozen=True)
class System:
    """How a system differs from the recipe of its task."""

    overrides: Sequence[str]
    width: int = 0
    published: Sequence[str] = ()
    scaled: Sequence[str] = ()
    reads_parses: bool = False

    def overrides_at(self, scale: Scale) -> tuple[str, ...]:
        """Returns the settings at a scale."""
        width, others = (scale.width, self.scaled) if scale.width else (self.width, self.published)
        sizes = {"width": width, "half": max(1, width // 2), "double": 2 * width}
        is_parsed = self.reads_parses and scale.parser is not None
        parser = [f"encoder.parser={scale.parser}"] if is_parsed else []
        return (*(override.format(**sizes) for override in self.overrides), *others, *parser)


@dataclass(frozen=True)
class Column:
    """A column of results: a split of a task, scored by accuracy."""

    title: str
    task: str
    split: str = "test"


@dataclass(frozen=True)
class Row:
    """A row of results."""

    title: str
    system: str
    paper: Sequence[float] = ()
    penalty: str = NONE
    overrides: Sequence[str] = ()
    several_seeds: bool = False

    @property
    def short_title(self) -> str:
        """The title without the words that most rows share."""
        return self.title.removeprefix("BiLSTM ").removesuffix(" pooling")


@dataclass(frozen=True)
class Experiment:
    """A table of the paper, or a figure, whose rows are not compared by tests."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    baseline: str | None = None  # the row that all others of a table are compared with

    def row(self, title: str) -> Row:
        return next(row for row in self.rows if row.title == title)

    def column(self, title: str) -> Column:
        return next(column for column in self.columns if column.title == title)


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


def _scale(name: str, tasks: dict[str, Any], overrides: Sequence[str], **fields: Any) -> Scale:
    made = {
        key: Task(overrides=(*overrides, *task.pop("overrides", ())), **task)
        for key, task in tasks.items()
    }
    return Scale(name, made, **fields)


def _experiment(name: str) -> Experiment:
    content = PAPER[name]
    columns = [Column(**column) for column in content["columns"]]
    rows = [Row(**row) for row in [*content.get("earlier", ()), *content["rows"]]]
    return Experiment(content["title"], columns, rows, content.get("baseline"))


SCALES = {name: _scale(name, **fields) for name, fields in _read("scales.toml").items()}
SYSTEMS = {name: System(**fields) for name, fields in _read("systems.toml").items()}
#: what the paper reports: tables, figures and claims
PAPER = _read("paper.toml")
EXPERIMENTS = {
    name: _experiment(name)
    for name in ("table1", "table2", "table3", "table4", "figure2", "figure3")
}
#: table 1: the systems of earlier papers
EARLIER = EXPERIMENTS["table1"].rows[: len(PAPER["table1"]["earlier"])]
#: figure 2: the families of attention and their systems
FAMILIES = {"vector": "generalized", "scalar": "scalar"}
