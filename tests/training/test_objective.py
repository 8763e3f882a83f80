"""Labels and scores as targets; correlations by NumPy and scipy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from genpool.errors import DataError
from genpool.training.dataset import Split
from genpool.training.objective import LabelObjective, ScoreObjective


def split_of(labels: list[int], scores: list[float] | None = None) -> Split:
    count = len(labels)
    starts = np.arange(count + 1, dtype=np.int64)
    return Split(
        np.zeros(count, np.int32),
        starts,
        np.array(labels),
        1,
        [str(row) for row in range(count)],
        [None] * count,
        np.array(scores or []),
    )


@pytest.mark.parametrize(
    ("scores", "labels"),
    [
        ([0.0, 5.0, 2.2], ("0", "1", "2", "3", "4", "5")),  # the STS benchmark
        ([1.0, 5.0], ("1", "2", "3", "4", "5")),  # SICK
        ([1.2, 4.7], ("1", "2", "3", "4", "5")),
        ([0.0, 1.0, 0.3], ("0", "0.5", "1")),
        ([0.0, 0.5], ("0", "0.1", "0.2", "0.30000000000000004", "0.4", "0.5")),
        ([0.0, 100.0], ("0", "20", "40", "60", "80", "100")),
        ([-2.0, 1.0], ("-2", "-1", "0", "1")),
    ],
)
def test_the_points_cover_the_range(scores: list[float], labels: tuple[str, ...]) -> None:
    objective = ScoreObjective.from_scores(np.array(scores))
    assert [float(label) for label in objective.labels] == pytest.approx([float(x) for x in labels])
    assert [float(label) for label in objective.labels] == objective.points.tolist()


def test_equal_scores_cannot_be_learned() -> None:
    with pytest.raises(DataError, match="all training rows have the score 2"):
        ScoreObjective.from_scores(np.array([2.0, 2.0]))


def test_a_target_is_a_distribution_whose_mean_is_the_score() -> None:
    objective = ScoreObjective([1, 2, 3, 4, 5])
    scores = np.array([1.0, 1.25, 3.0, 4.9, 5.0, 7.0])
    targets = objective.distribution(scores)
    by_hand: list[list[float]] = [
        [1, 0, 0, 0, 0],
        [0.75, 0.25, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 0, 0.1, 0.9],
        [0, 0, 0, 0, 1],
        [0, 0, 0, 0, 1],  # beyond the range of the training rows
    ]
    np.testing.assert_allclose(targets, by_hand, atol=1e-6)
    np.testing.assert_allclose(targets[:5] @ objective.points, scores[:5], atol=1e-6)


def test_the_targets_of_labels_are_their_ids_and_those_of_scores_distributions() -> None:
    split = split_of([0, 2, 1], [1.0, 3.0, 2.5])
    rows = np.array([2, 0])
    assert LabelObjective("abc").targets(split, rows).tolist() == [1, 0]
    targets = ScoreObjective([1, 2, 3]).targets(split, rows)
    torch.testing.assert_close(targets, torch.tensor([[0, 0.5, 0.5], [1.0, 0, 0]]))


def test_the_correlations_of_dev_are_those_of_scipy() -> None:
    chance = np.random.default_rng(0)
    probabilities = chance.dirichlet(np.ones(4), 30).astype(np.float32)
    gold = chance.uniform(0, 3, 30)
    dev = split_of([0] * 30, gold.tolist())
    metrics = ScoreObjective([0, 1, 2, 3]).dev_metrics(dev, probabilities)
    expected = probabilities @ np.arange(4)
    assert metrics["dev_pearson"] == pytest.approx(stats.pearsonr(gold, expected)[0], abs=1e-5)
    assert metrics["dev_spearman"] == pytest.approx(stats.spearmanr(gold, expected)[0], abs=1e-5)


def test_a_model_that_predicts_one_score_has_no_correlation() -> None:
    same = np.full((3, 2), 0.5, dtype=np.float32)
    report = ScoreObjective([0, 1]).report(split_of([0, 0, 0], [0.1, 0.5, 0.9]), same)
    assert (report.pearson, report.spearman) == (0.0, 0.0)


def test_the_accuracy_of_dev_is_the_share_of_rows_that_are_right() -> None:
    dev = split_of([0, 1, 0, 1, 1])
    probabilities = np.eye(2, dtype=np.float32)[[0, 1, 1, 1, 0]]  # rows 2 and 4 are wrong
    assert LabelObjective("ab").dev_metrics(dev, probabilities) == {"dev_accuracy": 0.6}


def test_the_standard_errors_are_those_of_a_simulation() -> None:
    chance = np.random.default_rng(0)
    accuracies = chance.binomial(50, 0.8, 20_000) / 50
    assert LabelObjective([]).standard_error(0.8, 50) == pytest.approx(accuracies.std(), rel=0.03)
    first = chance.normal(size=(4000, 40))
    second = 0.8 * first + 0.6 * chance.normal(size=(4000, 40))
    pearson = [np.corrcoef(one, other)[0, 1] for one, other in zip(first, second, strict=True)]
    error = ScoreObjective([0, 1]).standard_error(0.8, 40)
    assert error == pytest.approx(np.std(pearson), rel=0.15)
