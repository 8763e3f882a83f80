"""Which penalty a run adds to its loss, and the monitor that tells whether it does anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from genpool.pooling import Pooled
from genpool.pooling.penalties import Penalty
from genpool.training.heads import HeadPenalty, PenaltyMonitor, head_penalties
from genpool.training.preparation import Prepared, prepare
from genpool.training.settings import PenaltySettings
from tests.helpers.training_runs import metrics, run


def hinge(one: np.ndarray, other: np.ndarray, threshold: float) -> float:
    return max(threshold - float(((one - other) ** 2).sum()), 0.0)


def pooled(sentences: int = 4, heads: int = 2, time: int = 3, width: int = 1) -> Pooled:
    random = torch.Generator().manual_seed(0)
    vectors = torch.rand(sentences, heads, 6, generator=random)
    weights = torch.rand(sentences, heads, time, width, generator=random)
    weights = weights / weights.sum(dim=2, keepdim=True)
    return Pooled(vectors.flatten(1), vectors, weights)


def terms(penalties: list[Penalty]) -> list[float]:
    return [float(penalty.term) for penalty in penalties]


def test_no_penalty_and_a_penalty_of_weight_zero_add_nothing(pair_classifier) -> None:
    assert head_penalties(PenaltySettings(), pair_classifier.encoder, pooled(), 2) == []
    assert not PenaltySettings().is_enabled
    assert not PenaltySettings("parameter", weight=0.0).is_enabled


def test_the_parameter_penalty_is_one_term_on_the_first_matrices(pair_classifier) -> None:
    w1 = pair_classifier.encoder.pooling.w1.detach().numpy()
    settings = PenaltySettings("parameter", weight=0.5, threshold=30.0)
    (penalty,) = head_penalties(settings, pair_classifier.encoder, pooled(), 2)
    assert float(penalty.term.detach()) == pytest.approx(0.5 * hinge(w1[0], w1[1], 30.0), rel=1e-5)
    penalty.term.backward()
    assert pair_classifier.encoder.pooling.w1.grad.abs().max() > 0


def test_the_terms_of_the_two_sides_of_pairs_are_added(pair_classifier) -> None:
    output = pooled(sentences=4)
    heads = output.heads.numpy()
    settings = PenaltySettings("embedding", weight=0.1, threshold=2.0)
    sides = [
        0.1 * np.mean([hinge(heads[row][0], heads[row][1], 2.0) for row in rows])
        for rows in ((0, 1), (2, 3))
    ]
    assert terms(head_penalties(settings, pair_classifier.encoder, output, 2)) == pytest.approx(
        sides, rel=1e-5
    )


def test_single_sentences_have_one_term(text_classifier) -> None:
    output = pooled(sentences=4)
    heads = output.heads.numpy()
    settings = PenaltySettings("embedding", weight=1.0, threshold=2.0)
    expected = np.mean([hinge(row[0], row[1], 2.0) for row in heads])
    penalties = head_penalties(settings, text_classifier.encoder, output, 1)
    assert terms(penalties) == pytest.approx([expected], rel=1e-5)


@pytest.mark.parametrize("average", ["sentence", "batch"])
def test_the_attention_penalty_is_a_hinge_per_sentence_or_of_the_batch(
    text_classifier, average
) -> None:
    output = pooled(sentences=3, width=6)
    assert output.weights is not None
    weights = output.weights.numpy()
    distances = [float(((row[0] - row[1]) ** 2).sum()) for row in weights]
    threshold = sorted(distances)[1]  # one hinge inactive, so that the two ways differ
    per_sentence = float(np.mean([max(threshold - distance, 0.0) for distance in distances]))
    of_batch = max(threshold - float(np.mean(distances)), 0.0)
    assert per_sentence != pytest.approx(of_batch)
    settings = PenaltySettings("attention", 1.0, threshold, average)
    expected = per_sentence if average == "sentence" else of_batch
    assert terms(head_penalties(settings, text_classifier.encoder, output, 1)) == pytest.approx(
        [expected], rel=1e-4
    )


def test_lin_and_others_penalty_is_chosen_by_the_name_scalar(text_classifier) -> None:
    output = pooled(sentences=2)
    total = 0.0
    assert output.weights is not None
    for row in output.weights[..., 0].numpy():
        total += ((row @ row.T - np.eye(2)) ** 2).sum() / 2
    settings = PenaltySettings("scalar", weight=0.3)
    assert terms(head_penalties(settings, text_classifier.encoder, output, 1)) == pytest.approx(
        [0.3 * total], rel=1e-5
    )


def test_the_weights_are_asked_for_only_where_a_penalty_needs_them() -> None:
    needing = {
        name: HeadPenalty(PenaltySettings(name)).needs_weights
        for name in ("none", "parameter", "attention", "embedding", "scalar")
    }
    assert needing == {
        "none": False,
        "parameter": False,
        "attention": True,
        "embedding": False,
        "scalar": True,
    }


def penalty(term: float, distances: list[float], active: float) -> Penalty:
    return Penalty(torch.tensor(term), torch.tensor(distances), torch.tensor(active))


def test_the_monitor_gives_means_over_the_steps() -> None:
    monitor = PenaltyMonitor()
    assert monitor.report() == {}
    assert not monitor.is_inactive
    monitor.update([penalty(1.0, [2.0, 4.0], 0.5), penalty(2.0, [6.0, 8.0], 1.0)])
    monitor.update([penalty(3.0, [1.0, 3.0], 0.25)])
    assert monitor.report() == pytest.approx(
        {
            "penalty": (3.0 + 3.0) / 2,
            "penalty_active": (0.75 + 0.25) / 2,
            "penalty_distance_mean": (5.0 + 2.0) / 2,
            "penalty_distance_min": 1.0,
        }
    )
    assert not monitor.is_inactive


def test_shares_of_processes_add_up_to_what_one_process_sees() -> None:
    whole, one, other = PenaltyMonitor(), PenaltyMonitor(), PenaltyMonitor()
    whole.update([penalty((1.0 + 2 * 4.0) / 3, [1.0, 4.0, 4.0], 2 / 3)])
    one.update([penalty(1.0, [1.0], 0.0)], share=1 / 3)
    other.update([penalty(4.0, [4.0, 4.0], 1.0)], share=2 / 3)
    for name in ("term", "active", "distance"):
        assert getattr(one, name) + getattr(other, name) == pytest.approx(getattr(whole, name))
    assert min(one.smallest, other.smallest) == whole.smallest


def test_one_head_has_no_distances_and_no_smallest_one() -> None:
    monitor = PenaltyMonitor()
    monitor.update([penalty(0.0, [], 0.0)])
    assert "penalty_distance_min" not in monitor.report()
    assert monitor.is_inactive


def test_a_penalty_is_inactive_only_if_no_hinge_was_active_in_any_step() -> None:
    monitor = PenaltyMonitor()
    monitor.update([penalty(0.0, [9.0], 0.0)])
    assert monitor.is_inactive
    monitor.update([penalty(0.1, [0.5], 0.1)])
    assert not monitor.is_inactive


def wide_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads as far apart as those of the paper's sizes are from the start."""

    def prepare_apart(*arguments: Any) -> Prepared:
        prepared = prepare(*arguments)
        with torch.no_grad():
            prepared.model.encoder.pooling.get_parameter("w1")[0] += 1.0
        return prepared

    monkeypatch.setattr("genpool.training.loop.prepare", prepare_apart)


def test_a_parameter_penalty_that_sleeps_for_an_epoch_is_told(
    tables: Path, tmp_path: Path, no_pictures, monkeypatch, capsys
) -> None:
    wide_apart(monkeypatch)
    run(tables, tmp_path / "run", "penalty.name=parameter", "penalty.weight=0.1")
    warnings = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert len(warnings) == 2  # one for each epoch
    for warning in warnings:
        assert "the parameter penalty was inactive" in warning
        assert "threshold 1 " in warning
        assert "It has no effect." in warning
    line = metrics(tmp_path / "run")[0]
    assert line["penalty"] == line["penalty_active"] == 0
    # w1 has 4 x 16 values per head, which were moved apart by 1.
    assert line["penalty_distance_min"] > 48
    assert f"mean distance {line['penalty_distance_mean']:.3g}" in warnings[0]
    assert line["penalty_gradient_share"] == line["heads_parameter_active"] == 0
    report = (tmp_path / "run" / "report.md").read_text()
    text = warnings[-1].removeprefix("warning: ")
    assert f"**Warning** (2 of 2 evaluations): {text}" in report


def test_a_penalty_that_is_awake_is_in_the_metrics_and_not_warned_of(
    tables: Path, tmp_path: Path, no_pictures, capsys
) -> None:
    run(tables, tmp_path / "run", "penalty.name=attention", "penalty.weight=0.125")
    assert "warning" not in capsys.readouterr().err
    for line in metrics(tmp_path / "run"):
        assert line["penalty_active"] == 1
        assert 0 < line["penalty"] <= 0.125
        assert 0 <= line["penalty_distance_min"] <= line["penalty_distance_mean"]


def test_the_penalty_drives_heads_apart(tables: Path, tmp_path: Path, no_pictures) -> None:
    def distance(out: Path) -> Tensor:
        from genpool import TextClassifier

        w1 = (
            TextClassifier.from_pretrained(out / "last")
            .encoder.pooling.get_parameter("w1")
            .detach()
        )
        return (w1[0] - w1[1]).square().sum()

    run(tables, tmp_path / "without")
    run(tables, tmp_path / "with", "penalty.name=parameter", "penalty.weight=10")
    assert distance(tmp_path / "with") > 2 * distance(tmp_path / "without")


def test_without_a_penalty_the_metrics_say_nothing_of_one(finished: Path) -> None:
    assert not [name for line in metrics(finished) for name in line if "penalty" in name]
