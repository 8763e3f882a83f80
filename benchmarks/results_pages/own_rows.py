"""Which way to a classifier for how many rows: measured, cell by cell.

    python -m benchmarks.results_pages.own_rows

A cell is one method on one draw of training rows of one task. Every finished cell is a line of
`--cells`, results/own_rows.jsonl by default, and is not measured again: the same command continues
after any stop. Writes results/own_rows.md from all cells that are finished.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import torch

from benchmarks.pages import page_path
from benchmarks.results_pages.own_rows_data import DRAWS, ROWS, TASKS, read_task
from benchmarks.results_pages.own_rows_methods import METHODS, Outcome, accuracy
from benchmarks.results_pages.own_rows_page import write_own_rows

DEFAULT_CELLS = page_path("own_rows").with_suffix(".jsonl")
#: the methods that are measured with few rows only, because they take long: at most this many
MAX_ROWS = {"SetFit on MiniLM": 200}
#: a draw that takes hours is measured once
MAX_DRAWS = {("SetFit on MiniLM", "IMDB"): 1}


@dataclass(frozen=True)
class Cell:
    """One measurement.

    Attributes:
        task, rows, draw, method: what was measured.
        accuracy: on the test rows, between 0 and 1.
        correct: one character per test row, 1 where it was predicted correctly.
        train_seconds, encode_seconds: as in `Outcome`.
        threads: of PyTorch.
        time: when it was finished.
    """

    task: str
    rows: int
    draw: int
    method: str
    accuracy: float
    correct: str
    train_seconds: float
    encode_seconds: float
    threads: int
    time: str

    @property
    def key(self) -> tuple[str, int, int, str]:
        """What identifies the cell."""
        return self.task, self.rows, self.draw, self.method


def read_cells(path: Path) -> list[Cell]:
    """Returns the finished cells of a file; none where there is no file."""
    if not path.is_file():
        return []
    return [Cell(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def missing_cells(cells: list[Cell], methods: list[str]) -> Iterator[tuple[str, int, int, str]]:
    """Yields what is left to measure: few rows and the first draws first."""
    done = {cell.key for cell in cells}
    for rows, draw, task, method in product(ROWS, DRAWS, TASKS, methods):
        wanted = rows <= MAX_ROWS.get(method, rows) and draw < MAX_DRAWS.get(
            (method, task), len(DRAWS)
        )
        if wanted and (task, rows, draw, method) not in done:
            yield task, rows, draw, method


def make_cell(task: str, rows: int, draw: int, method: str, outcome: Outcome) -> Cell:
    """Returns the measurement of an outcome."""
    test = read_task(task).test
    pairs = zip(outcome.predicted, test.labels, strict=True)
    return Cell(
        task,
        rows,
        draw,
        method,
        accuracy(outcome.predicted, test),
        "".join(str(int(label == gold)) for label, gold in pairs),
        outcome.train_seconds,
        outcome.encode_seconds,
        torch.get_num_threads(),
        time.strftime("%Y-%m-%d %H:%M"),
    )


def add_cell(path: Path, cell: Cell) -> None:
    """Appends a finished cell to the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(cell)) + "\n")


def main() -> None:
    """Measures what is missing, then writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=Path, default=DEFAULT_CELLS)
    parser.add_argument("--method", action="append", choices=list(METHODS))
    parser.add_argument("--task", action="append", choices=list(TASKS))
    parser.add_argument("--rows", action="append", type=int, choices=ROWS)
    parser.add_argument("--page-only", action="store_true", help="measure nothing")
    options = parser.parse_args()
    tasks, rows = options.task or list(TASKS), options.rows or list(ROWS)
    wanted = missing_cells(read_cells(options.cells), options.method or list(METHODS))
    for task, count, draw, method in [] if options.page_only else wanted:
        if task in tasks and count in rows:
            cell = make_cell(task, count, draw, method, METHODS[method](task, count, draw))
            add_cell(options.cells, cell)
            seconds = f"{cell.train_seconds:.0f} s"
            print(*cell.key, f"{100 * cell.accuracy:.2f} %", seconds, flush=True)
    write_own_rows([asdict(cell) for cell in read_cells(options.cells)])


if __name__ == "__main__":
    main()
