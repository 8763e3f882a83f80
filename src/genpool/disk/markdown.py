"""Markdown tables and percentages, for all pages that genpool writes: cards, reports, results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]], text: int = 1) -> str:
    """Returns a Markdown table; the first `text` columns are aligned to the left, others right.

    A bar or a line break in a cell does not end it.

    Example:
        >>> print(markdown_table(["label", "rows"], [["yes", 12], ["no", 7]]))
        | label | rows |
        |---|---:|
        | yes | 12 |
        | no | 7 |
    """
    rule = ["---" if column < text else "---:" for column in range(len(header))]
    lines = [_line(header), "|" + "|".join(rule) + "|"]
    return "\n".join(lines + [_line(row) for row in rows])


def percent(share: float) -> str:
    """Returns 0.8231 as `82.31 %`."""
    return f"{100 * share:.2f} %"


def percent_interval(interval: tuple[float, float]) -> str:
    """Returns (0.8153, 0.8306) as `81.53 to 83.06 %`; "to", because a limit may be negative."""
    low, high = interval
    return f"{100 * low:.2f} to {percent(high)}"


def _line(cells: Sequence[object]) -> str:
    escaped = (" ".join(str(cell).replace("|", "\\|").split()) for cell in cells)
    return f"| {' | '.join(escaped)} |"
