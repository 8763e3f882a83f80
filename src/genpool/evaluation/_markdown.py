"""Tables and numbers as every report of this folder writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table: the first column to the left, the others (numbers) to the right."""
    rule = ["---"] + ["---:"] * (len(header) - 1)
    lines = [_line(header), "|" + "|".join(rule) + "|"]
    return "\n".join(lines + [_line(row) for row in rows])


def percent(share: float) -> str:
    """0.8231 as `82.31 %`."""
    return f"{100 * share:.2f} %"


def percent_interval(interval: tuple[float, float]) -> str:
    """(0.8153, 0.8306) as `81.53 to 83.06 %`; `to`, because a limit may be negative."""
    low, high = interval
    return f"{100 * low:.2f} to {percent(high)}"


def _line(cells: Sequence[str]) -> str:
    # A label is a user's text: a bar or a line break in it must not end the cell.
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"
