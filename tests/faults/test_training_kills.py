"""A short form of `python -m benchmarks.faults.training_kills`: one of two processes is killed.

Runs that are killed alone are in tests/training/test_stop_and_go.py.
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.faults.training_kills import LOST, kill_one_of_two


def test_a_process_that_lost_the_other_says_so_and_the_run_continues(tmp_path: Path) -> None:
    lost = kill_one_of_two(tmp_path / "run", 1, expected=None)
    assert LOST in lost.said
    assert "continue with the same command and --resume" in lost.said
    assert json.loads((tmp_path / "run" / "results.json").read_text())["run"]["steps"] == 24
