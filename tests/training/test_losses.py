"""The loss of a step, and terms that are added to it from outside the loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from genpool.model import Classified, Classifier
from genpool.training.objective import BatchShare, EncoderLoss, LossTerm, step_loss
from tests.helpers.training_runs import metrics, run, weights

SENTENCES = [["the", "man"], ["dog"], ["a", "red", "dog"]]


class LogitNorm:
    """A term on the output, as an encoder with a reward of its own would add it."""

    needs_weights = False

    def __init__(self, weight: float, per_example: bool = True) -> None:
        self.weight, self.per_example, self.calls = weight, per_example, 0

    def __call__(
        self,
        model: Classifier,
        output: Classified,
        losses: torch.Tensor,
        targets: torch.Tensor,
    ) -> list[LossTerm]:
        self.calls += 1
        value = self.weight * output.logits.square().sum(dim=1).mean()
        return [LossTerm(value, self.per_example)]


def share(count: int, rows: int = 3, processes: int = 1, batch: int | None = None) -> BatchShare:
    return BatchShare(np.arange(rows), count, batch or rows, processes)


def test_the_loss_is_the_mean_cross_entropy_and_all_terms(text_classifier: Any) -> None:
    output = text_classifier(text_classifier.text.batch(SENTENCES))
    logits = output.logits.detach().double().numpy()
    labels = torch.tensor([0, 2, 1])
    log_sums = np.log(np.exp(logits).sum(axis=1))
    entropies = [log_sums[row] - logits[row, label] for row, label in enumerate(labels)]
    norms = [(row**2).sum() for row in logits]
    extra = [LogitNorm(0.3), LogitNorm(2.0)]
    computed = step_loss(text_classifier, output, labels, share(3), extra)
    assert float(computed.entropy.detach()) == pytest.approx(sum(entropies), rel=1e-5)
    expected = np.mean(entropies) + 2.3 * np.mean(norms)
    assert float(computed.total.detach()) == pytest.approx(expected, rel=1e-5)
    assert len(computed.terms) == 2


@pytest.mark.parametrize("per_example", [True, False])
def test_shares_of_two_processes_average_to_the_loss_of_one(
    text_classifier: Any, per_example: bool
) -> None:
    labels = torch.tensor([0, 2, 1])
    extra = [LogitNorm(0.5, per_example)]

    def loss(rows: list[int], part: BatchShare) -> float:
        output = text_classifier(text_classifier.text.batch([SENTENCES[row] for row in rows]))
        if not per_example:  # the same in all processes, like a term on parameters
            output = output._replace(logits=output.logits - output.logits.detach() + 1.5)
        return float(step_loss(text_classifier, output, labels[rows], part, extra).total.detach())

    whole = loss([0, 1, 2], share(3))
    parts = [
        loss([0, 2], share(2, rows=2, processes=2, batch=3)),
        loss([1], share(1, rows=1, processes=2, batch=3)),
    ]
    assert sum(parts) / 2 == pytest.approx(whole, rel=1e-5)


def test_a_process_without_rows_adds_nothing(text_classifier: Any) -> None:
    output = text_classifier(text_classifier.text.batch(SENTENCES[:1]))
    nothing = share(0, rows=1, processes=2, batch=1)
    computed = step_loss(text_classifier, output, torch.tensor([0]), nothing, [LogitNorm(0.5)])
    assert float(computed.total.detach()) == float(computed.entropy.detach()) == 0
    computed.total.backward()  # its gradients exist, and are zero
    for parameter in text_classifier.mlp.parameters():
        assert parameter.grad.abs().max() == 0


def test_a_run_takes_extra_losses_beside_its_penalty(
    tables: Path, tmp_path: Path, no_pictures: None
) -> None:
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


def test_an_encoder_that_learns_from_a_reward_is_trained_in_two_phases(
    tables: Path, tmp_path: Path, no_pictures: None
) -> None:
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


def test_the_loss_of_an_encoder_is_its_own_term_of_the_examples_log_likelihoods(
    text_classifier: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = text_classifier(text_classifier.text.batch(SENTENCES))
    labels = torch.tensor([0, 2, 1])
    received = []

    def extra_loss(log_likelihoods: torch.Tensor) -> torch.Tensor:
        received.append(log_likelihoods)
        return torch.tensor(0.25)

    monkeypatch.setattr(text_classifier.encoder.encoder, "extra_loss", extra_loss)
    computed = step_loss(text_classifier, output, labels, share(3), [EncoderLoss()])
    expected = output.logits.detach().log_softmax(dim=1)[torch.arange(3), labels]
    torch.testing.assert_close(received[0], expected)
    assert not received[0].requires_grad
    without = step_loss(text_classifier, output, labels, share(3), [])
    assert float((computed.total - without.total).detach()) == pytest.approx(0.25)


def test_an_encoder_without_a_term_adds_none(text_classifier: Any) -> None:
    output = text_classifier(text_classifier.text.batch(SENTENCES))
    computed = step_loss(
        text_classifier, output, torch.tensor([0, 2, 1]), share(3), [EncoderLoss()]
    )
    assert computed.terms == []
