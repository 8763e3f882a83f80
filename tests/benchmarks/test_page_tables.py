"""Tables of result pages: poolings over several seeds, and workers that die, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.results_pages import scale_simulation
from benchmarks.results_pages.embedded_poolings import lead_row, mean_row, section
from benchmarks.results_pages.scale_simulation import expected_repeated, simulate
from benchmarks.results_pages.scale_training import projected_speedup


def test_means_ranges_and_differences_of_hand_worked_scores() -> None:
    ours = [[0.80, 0.70, 0.60], [0.82, 0.72, 0.66]]
    theirs = [[0.79, 0.71, 0.60], [0.80, 0.70, 0.60]]
    assert mean_row("max", ours) == [
        "max",
        "0.8100 (0.8000 to 0.8200)",
        "0.7100 (0.7000 to 0.7200)",
        "0.6300 (0.6000 to 0.6600)",
    ]
    assert lead_row("max", ours, theirs) == [
        "over max",
        "+0.0150 (+0.0100, +0.0200)",
        "+0.0050 (-0.0100, +0.0200)",
        "+0.0300 (+0.0000, +0.0600)",
    ]
    parts = section({"generalized": ours, "max": theirs}, {"generalized": 2_000_000, "max": 1})
    assert "over 2 seeds" in parts[0] and "2.00 M parameters" in parts[2]
    assert [line[:21] for line in parts[4].splitlines()[2:]] == ["| over max | +0.0150 "]


def test_the_repeated_share_is_that_of_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale_simulation, "SPREAD", 0.0)
    run = simulate(shards=10, shard_seconds=2.0, mean_life=math.inf, workers=4, seed=0)
    # Three rounds of four workers: 4 + 4 + 2 shards.
    assert (run.seconds, run.repeated, run.useful, run.deaths) == (6.0, 0.0, 20.0, 0)
    monkeypatch.undo()
    runs = [simulate(2000, 100.0, 400.0, 8, seed) for seed in range(10)]
    share = np.mean([run.repeated / run.useful for run in runs])
    assert share == pytest.approx(expected_repeated(100.0, 400.0), rel=0.1)
    assert expected_repeated(1.0, 1e4) == pytest.approx(0.5e-4, rel=1e-3)  # half a shard a death
    assert simulate(50, 10.0, 60.0, 4, 1) == simulate(50, 10.0, 60.0, 4, 1)
    assert simulate(50, 10.0, 60.0, 4, 1) != simulate(50, 10.0, 60.0, 4, 2)


def test_a_projection_starts_from_the_two_measured_speeds() -> None:
    assert projected_speedup(1, 1.6) == 1.0
    assert projected_speedup(2, 1.6) == pytest.approx(1.6)
    # A step of 1 takes 0.625 with two processes: 0.5 of work and 0.125 of exchange. With four,
    # a ring passes 2 * 3/4 of the gradients instead of 2 * 1/2: 0.25 + 0.1875.
    assert projected_speedup(4, 1.6) == pytest.approx(1 / (0.25 + 0.1875))
    assert projected_speedup(8, 2.0) == pytest.approx(8)
