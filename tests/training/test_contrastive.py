"""The supervised contrastive loss, compared with loops over pairs of rows."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from genpool.training.objective import supervised_contrastive
from tests.helpers.training_runs import metrics, run

pytestmark = pytest.mark.usefixtures("no_pictures")


def by_loops(vectors: np.ndarray, labels: list[int], temperature: float) -> float:
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    losses = []
    for row, label in enumerate(labels):
        others = [other for other in range(len(labels)) if other != row]
        total = sum(math.exp(units[row] @ units[other] / temperature) for other in others)
        same = [other for other in others if labels[other] == label]
        if same:
            shares = [math.exp(units[row] @ units[other] / temperature) / total for other in same]
            losses.append(-np.mean(np.log(shares)))
    return float(np.mean(losses)) if losses else 0.0


@pytest.mark.parametrize("labels", [[0, 1, 0, 1, 2, 0], [0, 0, 0, 0, 0, 0], [0, 1, 2, 3, 4, 5]])
@pytest.mark.parametrize("temperature", [0.05, 0.1, 1.0])
def test_it_is_the_equation(labels: list[int], temperature: float) -> None:
    vectors = np.random.default_rng(0).normal(size=(6, 4))
    loss = supervised_contrastive(torch.from_numpy(vectors), torch.tensor(labels), temperature)
    assert float(loss) == pytest.approx(by_loops(vectors, labels, temperature), rel=1e-4, abs=1e-6)


def test_its_gradient_is_that_of_the_equation() -> None:
    vectors = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 1, 0, 1, 2])
    supervised_contrastive(vectors, labels, 0.5).backward()
    assert vectors.grad is not None
    plain = vectors.detach().numpy()
    for row, column in ((0, 0), (3, 2), (4, 1)):
        moved = [plain.copy(), plain.copy()]
        moved[0][row, column] += 1e-5
        moved[1][row, column] -= 1e-5
        above, below = (by_loops(values, labels.tolist(), 0.5) for values in moved)
        assert float(vectors.grad[row, column]) == pytest.approx(
            (above - below) / 2e-5, rel=1e-3, abs=1e-4
        )


@pytest.mark.parametrize("rows", [1, 2])
def test_a_batch_without_pairs_adds_nothing(rows: int) -> None:
    vectors = torch.randn(rows, 3, requires_grad=True)
    loss = supervised_contrastive(vectors, torch.arange(rows), 0.1)
    loss.backward()
    assert float(loss.detach()) == 0
    assert vectors.grad is not None
    assert not vectors.grad.any()


def test_a_row_without_a_vector_is_finite() -> None:
    vectors = torch.zeros(3, 4, requires_grad=True)
    loss = supervised_contrastive(vectors, torch.tensor([0, 0, 1]), 0.1)
    loss.backward()
    assert vectors.grad is not None
    assert bool(torch.isfinite(loss))
    assert bool(torch.isfinite(vectors.grad).all())


def test_a_run_with_it_learns_something_else_and_reports_the_cross_entropy_alone(
    tables: Path, finished: Path, tmp_path: Path
) -> None:
    run(tables, tmp_path / "run", "training.contrastive_weight=1.0")
    with_it, without = metrics(tmp_path / "run"), metrics(finished)
    assert with_it[0]["train_loss"] != without[0]["train_loss"]
    assert with_it[0]["train_loss"] < 1.0  # about log 2; the contrastive term alone would be more
