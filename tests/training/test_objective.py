"""Labels and scores as targets, and the loss of a step, against NumPy, SciPy and equations."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scipy import stats

from genpool.errors import DataError
from genpool.model import Classified, Classifier
from genpool.training.dataset import Split
from genpool.training.loop import BatchShare, step_loss
from genpool.training.objective import (
    EncoderLoss,
    LabelObjective,
    LossTerm,
    ScoreObjective,
    supervised_contrastive,
)
from tests.helpers.training_runs import metrics, run, weights


def split_of(labels: list[int], scores: list[float] | None = None) -> Split:
    count = len(labels)
    tokens, starts = np.zeros(count, np.int32), np.arange(count + 1, dtype=np.int64)
    none: list[str | None] = [None] * count
    ids, targets = [str(row) for row in range(count)], np.array(scores or [np.nan] * count)
    return Split(tokens, starts, 1, ids, none, none, targets, np.array(labels), targets)


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
def test_the_points_cover_the_range(scores, labels):
    objective = ScoreObjective.from_scores(np.array(scores))
    assert [float(label) for label in objective.labels] == pytest.approx([float(x) for x in labels])
    assert [float(label) for label in objective.labels] == objective.points.tolist()


def test_equal_scores_cannot_be_learned():
    with pytest.raises(DataError, match="all training rows have the score 2"):
        ScoreObjective.from_scores(np.array([2.0, 2.0]))


def test_a_target_is_a_distribution_whose_mean_is_the_score():
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


def test_the_targets_of_labels_are_their_ids_and_those_of_scores_distributions():
    split = split_of([], [])
    split.names, split.scores = ["a", "c", None], np.array([1.0, 3.0, 2.75])
    LabelObjective("abc").set_targets(split)
    assert split.labels.tolist() == split.targets.tolist() == [0, 2, -1]
    ScoreObjective([1, 2, 3]).set_targets(split)
    assert split.labels.tolist() == [0, 2, 2]
    np.testing.assert_array_equal(split.targets, [[1, 0, 0], [0, 0, 1], [0, 0.25, 0.75]])


def test_the_correlations_of_dev_are_those_of_scipy():
    chance = np.random.default_rng(0)
    probabilities = chance.dirichlet(np.ones(4), 30).astype(np.float32)
    gold = chance.uniform(0, 3, 30)
    dev = split_of([0] * 30, gold.tolist())
    metrics = ScoreObjective([0, 1, 2, 3]).dev_metrics(dev, probabilities)
    expected = probabilities @ np.arange(4)
    assert metrics["dev_pearson"] == pytest.approx(stats.pearsonr(gold, expected)[0], abs=1e-5)
    assert metrics["dev_spearman"] == pytest.approx(stats.spearmanr(gold, expected)[0], abs=1e-5)
    same = np.full((3, 2), 0.5, dtype=np.float32)  # one score for all: no correlation
    report = ScoreObjective([0, 1]).report(split_of([0, 0, 0], [0.1, 0.5, 0.9]), same)
    assert (report.pearson, report.spearman) == (0.0, 0.0)


def test_the_accuracy_of_dev_is_the_share_of_rows_that_are_right():
    dev = split_of([0, 1, 0, 1, 1])
    probabilities = np.eye(2, dtype=np.float32)[[0, 1, 1, 1, 0]]  # rows 2 and 4 are wrong
    assert LabelObjective("ab").dev_metrics(dev, probabilities) == {"dev_accuracy": 0.6}


def test_the_standard_errors_are_those_of_a_simulation():
    chance = np.random.default_rng(0)
    accuracies = chance.binomial(50, 0.8, 20_000) / 50
    assert LabelObjective([]).standard_error(0.8, 50) == pytest.approx(accuracies.std(), rel=0.03)
    first = chance.normal(size=(4000, 40))
    second = 0.8 * first + 0.6 * chance.normal(size=(4000, 40))
    pearson = [np.corrcoef(one, other)[0, 1] for one, other in zip(first, second, strict=True)]
    error = ScoreObjective([0, 1]).standard_error(0.8, 40)
    assert error == pytest.approx(np.std(pearson), rel=0.15)


# --- The loss of a step, and terms that are added to it from outside the loop ---------------------
SENTENCES = [["the", "man"], ["dog"], ["a", "red", "dog"]]


class LogitNorm:
    """A term on the output, as an encoder with a reward of its own would add it."""

    needs_weights = False

    def __init__(self, weight: float, per_example: bool = True) -> None:
        self.weight, self.per_example, self.calls = weight, per_example, 0

    def __call__(
        self, model: Classifier, output: Classified, losses: torch.Tensor, targets: torch.Tensor
    ) -> list[LossTerm]:
        self.calls += 1
        value = self.weight * output.logits.square().sum(dim=1).mean()
        return [LossTerm(value, self.per_example)]


def share(count: int, rows: int = 3, processes: int = 1, batch: int | None = None) -> BatchShare:
    return BatchShare(np.arange(rows), count, batch or rows, processes)


def test_the_loss_is_the_mean_cross_entropy_and_all_terms(text_classifier):
    output = text_classifier(text_classifier.text.batch(SENTENCES))
    logits = output.logits.detach().double().numpy()
    labels = torch.tensor([0, 2, 1])
    log_sums = np.log(np.exp(logits).sum(axis=1))
    entropies = [log_sums[row] - logits[row, label] for row, label in enumerate(labels)]
    norms = [(row**2).sum() for row in logits]
    extra = [LogitNorm(0.3), LogitNorm(2.0)]
    total, entropy, terms = step_loss(text_classifier, output, labels, share(3), extra)
    assert float(entropy.detach()) == pytest.approx(sum(entropies), rel=1e-5)
    expected = np.mean(entropies) + 2.3 * np.mean(norms)
    assert float(total.detach()) == pytest.approx(expected, rel=1e-5)
    assert len(terms) == 2


@pytest.mark.parametrize("per_example", [True, False])
def test_shares_of_two_processes_average_to_the_loss_of_one(text_classifier, per_example):
    labels = torch.tensor([0, 2, 1])
    extra = [LogitNorm(0.5, per_example)]

    def loss(rows: list[int], part: BatchShare) -> float:
        output = text_classifier(text_classifier.text.batch([SENTENCES[row] for row in rows]))
        if not per_example:  # the same in all processes, like a term on parameters
            output = output._replace(logits=output.logits - output.logits.detach() + 1.5)
        return float(step_loss(text_classifier, output, labels[rows], part, extra)[0].detach())

    whole = loss([0, 1, 2], share(3))
    parts = [
        loss([0, 2], share(2, rows=2, processes=2, batch=3)),
        loss([1], share(1, rows=1, processes=2, batch=3)),
    ]
    assert sum(parts) / 2 == pytest.approx(whole, rel=1e-5)


def test_a_run_takes_extra_losses_beside_its_penalty(tables, tmp_path):
    penalty = ("penalty.name=embedding", "training.epochs=1")
    run(tables, tmp_path / "without", *penalty)
    none, some = LogitNorm(0.0), LogitNorm(5.0)
    run(tables, tmp_path / "zero", *penalty, extra_losses=[none])
    run(tables, tmp_path / "with", *penalty, extra_losses=[some])
    assert weights(tmp_path / "zero", "last") == weights(tmp_path / "without", "last")
    assert weights(tmp_path / "with", "last") != weights(tmp_path / "without", "last")
    assert none.calls == some.calls == 6 + 1  # steps, and the gradients at the evaluation
    shares = [metrics(tmp_path / name)[0]["penalty_gradient_share"] for name in ("with", "without")]
    assert 0 < shares[0] < shares[1]  # a large other term leaves less to the penalty


RESAN = (
    "encoder.name=resan",
    "encoder.hidden_dim=4",
    "encoder.pretraining_epochs=1",
    "pooling.name=source-to-token",
)


def samplers(out: Path) -> dict[str, torch.Tensor]:
    """The parameters that decide which words a trained ReSAN chooses."""
    tensors = load_file(out / "last" / "model.safetensors")
    return {name: value for name, value in tensors.items() if "_selector." in name}


def test_an_encoder_that_learns_from_a_reward_is_trained_in_two_phases(tables, tmp_path):
    for epochs in (1, 2):
        run(tables, tmp_path / str(epochs), *RESAN, f"training.epochs={epochs}")
    first, second = samplers(tmp_path / "1"), samplers(tmp_path / "2")
    assert len(first) == 8  # two samplers of two layers
    for name, value in first.items():
        if name.endswith("output.weight"):
            assert not value.any()  # as before training: no choice was made
        if name.endswith("output.bias"):
            assert value.tolist() == [2.0]
    assert all(not torch.equal(second[name], value) for name, value in first.items())


def test_the_loss_of_an_encoder_is_a_term_of_the_log_likelihoods(text_classifier, monkeypatch):
    output = text_classifier(text_classifier.text.batch(SENTENCES))
    labels = torch.tensor([0, 2, 1])
    received = []

    def extra_loss(log_likelihoods: torch.Tensor) -> torch.Tensor:
        received.append(log_likelihoods)
        return torch.tensor(0.25)

    monkeypatch.setattr(text_classifier.encoder.encoder, "extra_loss", extra_loss)
    total = step_loss(text_classifier, output, labels, share(3), [EncoderLoss()])[0]
    expected = output.logits.detach().log_softmax(dim=1)[torch.arange(3), labels]
    torch.testing.assert_close(received[0], expected)
    assert not received[0].requires_grad
    without = step_loss(text_classifier, output, labels, share(3), [])[0]
    assert float((total - without).detach()) == pytest.approx(0.25)


# --- The supervised contrastive loss, compared with loops over pairs of rows ----------------------


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
def test_it_is_the_equation(labels, temperature):
    vectors = np.random.default_rng(0).normal(size=(6, 4))
    loss = supervised_contrastive(torch.from_numpy(vectors), torch.tensor(labels), temperature)
    assert float(loss) == pytest.approx(by_loops(vectors, labels, temperature), rel=1e-4, abs=1e-6)


def test_its_gradient_is_that_of_the_equation():
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


@pytest.mark.parametrize(
    ("vectors", "labels"), [(torch.ones(1, 3), [0]), (torch.zeros(3, 4), [0, 0, 1])]
)
def test_a_batch_without_pairs_and_rows_without_a_vector_have_finite_gradients(vectors, labels):
    vectors = vectors.clone().requires_grad_()
    loss = supervised_contrastive(vectors, torch.tensor(labels), 0.1)
    loss.backward()
    assert vectors.grad is not None
    assert bool(torch.isfinite(loss)) and bool(torch.isfinite(vectors.grad).all())
    assert len(labels) > 1 or (float(loss.detach()) == 0 and not vectors.grad.any())


def test_a_run_with_it_differs_and_reports_the_cross_entropy_alone(tables, finished, tmp_path):
    run(tables, tmp_path / "run", "training.contrastive_weight=1.0")
    with_it, without = metrics(tmp_path / "run"), metrics(finished)
    assert with_it[0]["train_loss"] != without[0]["train_loss"]
    assert with_it[0]["train_loss"] < 1.0  # about log 2; the contrastive term alone would be more
