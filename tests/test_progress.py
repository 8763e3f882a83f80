"""How far a long job is: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from genpool.progress import PLAIN_LINE_SECONDS, progress


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """A clock that stands still until its only element is changed."""
    now = [100.0]
    monkeypatch.setattr("genpool.progress.time.monotonic", lambda: now[0])
    return now


@pytest.fixture
def terminal(monkeypatch) -> io.StringIO:
    """What a wide terminal would show."""
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=200, color_system=None)
    monkeypatch.setattr("rich.console.Console", lambda stderr: console)
    return shown


def test_nothing_is_printed_unless_it_is_shown(capsys) -> None:
    with progress("encoding", 3, shown=False) as done:
        done(1)
        done(2, "a note")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("total", "earlier", "seconds", "count", "line"),
    [
        (2000, 0, 4, 2000, "encoding: 2,000/2,000 (500/s)"),
        # What was done earlier is shown, but not counted in the rate.
        (100, 60, PLAIN_LINE_SECONDS, 20, "encoding: 80/100 (2/s, 10 s left)"),
        (None, 0, PLAIN_LINE_SECONDS, 50, "encoding: 50 (5/s)"),
    ],
)
def test_plain_lines_go_to_standard_error(
    capsys, clock, total, earlier, seconds, count, line
) -> None:
    with progress("encoding", total, earlier=earlier) as done:
        clock[0] += seconds
        done(count)
    assert capsys.readouterr() == ("", f"{line}\n")


def test_a_plain_line_comes_only_now_and_then_and_at_the_end(capsys, clock) -> None:
    with progress("training", 100, unit=" pairs/s") as done:
        clock[0] += 1
        done(10)
        clock[0] += PLAIN_LINE_SECONDS
        done(12, "loss 0.5")
        clock[0] += 1
        done(38)
        clock[0] += 8
        done(40)
    assert capsys.readouterr().err.splitlines() == [
        "training: 22/100 (2 pairs/s, 39 s left) loss 0.5",
        "training: 100/100 (5 pairs/s)",
    ]


def test_brackets_in_a_plain_line_are_printed_as_they_are(capsys, clock) -> None:
    with progress("[red]job", 1) as done:  # which takes no time
        done(1, "[dev] 81.2")
    printed = capsys.readouterr().err
    assert printed.startswith("[red]job: 1/1") and printed.endswith("[dev] 81.2\n")


def test_a_terminal_shows_a_bar_with_count_rate_and_note(terminal, clock) -> None:
    with progress("[red]job", 4600, unit=" lines/s", earlier=600) as done:
        clock[0] += 2
        done(1000, "first")
        clock[0] += 2
        done(3000, "[dev] 81.2")
    last = re.split(r"[\r\n]+", terminal.getvalue())[-2]
    assert "[red]job" in last and "4600/4600" in last
    assert "1,000 lines/s" in last and "[dev] 81.2" in last and "first" not in last


def test_an_error_inside_passes_through_and_ends_the_bar(terminal) -> None:
    with pytest.raises(KeyboardInterrupt), progress("encoding", 3) as done:
        done(1)
        raise KeyboardInterrupt
    assert terminal.getvalue().endswith("\x1b[?25h")  # the cursor is back
