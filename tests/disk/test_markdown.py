"""Markdown tables."""

from __future__ import annotations

from genpool.disk.markdown import markdown_table, percent, percent_interval


def test_text_is_aligned_to_the_left_and_values_to_the_right() -> None:
    rows = [["yes", 12, 0.5], ["no", 7, 0.25]]
    assert markdown_table(["label", "rows", "share"], rows).split("\n") == [
        "| label | rows | share |",
        "|---|---:|---:|",
        "| yes | 12 | 0.5 |",
        "| no | 7 | 0.25 |",
    ]
    assert markdown_table(["a", "b", "c"], [], text=2).split("\n")[1] == "|---|---|---:|"


def test_bars_and_line_breaks_stay_within_their_cell() -> None:
    assert markdown_table(["a"], [["x | y\n  z"]]).split("\n")[2] == r"| x \| y z |"


def test_percentages_have_two_decimals() -> None:
    assert percent(0.82314) == "82.31 %"
    assert percent_interval((-0.0012, 0.8306)) == "-0.12 to 83.06 %"
