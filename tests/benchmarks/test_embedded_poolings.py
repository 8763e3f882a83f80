"""The section that compares poolings over several seeds."""

from __future__ import annotations

from benchmarks.results_pages.embedded_poolings import lead_row, mean_row, section


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


def test_the_first_pooling_is_compared_with_every_other() -> None:
    scores = [[0.8, 0.7, 0.6], [0.8, 0.7, 0.6]]
    students = {"generalized": scores, "max": scores, "mean": scores}
    parts = section(students, dict.fromkeys(students, 2_000_000))
    assert "over 2 seeds" in parts[0]
    assert parts[2].count("2.00 M parameters") == 3
    assert [line.split("|")[1].strip() for line in parts[4].splitlines()[2:]] == [
        "over max",
        "over mean",
    ]
