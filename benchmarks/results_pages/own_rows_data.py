"""The rows of results/own_rows.md: three tasks, seeded draws of training rows, fixed test rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from benchmarks.data import data_path
from genpool.data import open_reader
from genpool.data.splits import seeded_order

DRAWS = (0, 1, 2)
ROWS = (200, 1000, 5000)
#: the seed of a draw is this plus its number
FIRST_SEED = 1000
#: IMDB is one file here: these rows are the test set, drawn once; the others are drawn from
IMDB_TEST_ROWS, IMDB_SEED = 2000, 15


@dataclass(frozen=True)
class Rows:
    """Texts with their labels."""

    texts: list[str]
    labels: list[str]

    def take(self, numbers: list[int]) -> Rows:
        """Returns the rows of these numbers."""
        texts, labels = self.texts, self.labels
        return Rows([texts[row] for row in numbers], [labels[row] for row in numbers])


@dataclass(frozen=True)
class Task:
    """The rows that training rows are drawn from, and the test rows."""

    pool: Rows
    test: Rows


def _read(path: str, split: str) -> Rows:
    examples = list(open_reader("table", data_path(path)).read(split))
    return Rows([row.first for row in examples], [str(row.label) for row in examples])


def _imdb() -> Task:
    rows = _read("imdb/all.tsv.xz", "all")
    order = seeded_order(len(rows.texts), IMDB_SEED).tolist()
    return Task(rows.take(order[IMDB_TEST_ROWS:]), rows.take(order[:IMDB_TEST_ROWS]))


TASKS = {
    "TREC": lambda: Task(_read("trec", "train"), _read("trec", "test")),
    "SST-5": lambda: Task(_read("sst5", "train"), _read("sst5", "test")),
    "IMDB": _imdb,
}


@cache
def read_task(name: str) -> Task:
    """Returns the rows of a task of `TASKS`."""
    return TASKS[name]()


def draw_numbers(name: str, rows: int, draw: int) -> list[int]:
    """Returns the numbers of a draw within the pool; smaller draws are parts of larger ones."""
    order = seeded_order(len(read_task(name).pool.texts), FIRST_SEED + draw)
    return [int(number) for number in order[:rows]]


def draw_rows(name: str, rows: int, draw: int) -> Rows:
    """Returns the training rows of a draw."""
    return read_task(name).pool.take(draw_numbers(name, rows, draw))
