"""A short form of `python -m benchmarks.faults.soak`: few clients of every kind, two seconds."""

from __future__ import annotations

import sys

import pytest

from benchmarks.faults.soak import Outcome, run


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_clients_that_misbehave_harm_nobody() -> None:
    outcome = run(clients=20, seconds=2)
    assert outcome.wrong == 0
    assert not [problem for problem in outcome.failures() if "memory" not in problem]
    assert outcome.answers["right"]["200"] > 0
    assert set(outcome.answers["right"]) <= {"200", "503"}
    assert outcome.memory


def test_failures_are_noticed() -> None:
    outcome = Outcome(memory=[100.0] * 6 + [150.0] * 3)
    outcome.count("right", "200")
    outcome.count("right", "503")
    assert outcome.failures() == ["memory grew from 100 to 150 MB"]
    outcome.count("right", "500")
    outcome.wrong = 2
    assert outcome.failures()[:2] == ["right: 1 x 500", "2 wrong answers"]
    assert Outcome(memory=[50.0, 90.0, 100.0] * 3).failures() == []
