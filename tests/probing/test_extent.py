"""How far a probe goes from its linear start: a line between weights, and where to stop on it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from genpool.probing.fitting import (
    ENOUGH_ROWS,
    EXTENTS,
    FOLDS,
    Positions,
    ProbeModel,
    ProbeTraining,
    Weights,
    choose_extent,
    copy_weights,
    fit_probe,
    fold_count,
    folds,
    probe_logits,
    set_extent,
    start_classifier,
)

from .test_probe_model import make_model, marked_states, random_labels, random_states


def test_every_row_is_held_out_once_and_labels_with_few_rows_never() -> None:
    labels = np.array([0] * 7 + [1] * 12 + [2] * 2)
    held = []
    for kept, held_out in folds(labels, seed=4):
        assert sorted([*kept, *held_out]) == list(range(21))
        assert set(labels[kept]) == {0, 1, 2}
        assert sum(labels[held_out] == 1) == 4
        held += held_out.tolist()
    assert sorted(held) == list(range(19))


def test_of_many_rows_as_many_folds_are_used_as_give_enough_rows() -> None:
    assert [fold_count(texts) for texts in (1, 200, 1000, 5000)] == [3, 3, 2, 1]
    labels = np.arange(2000) % 2
    held = [len(held_out) for _, held_out in folds(labels, seed=0)]
    assert len(held) == 1 and held[0] >= ENOUGH_ROWS
    assert held[0] == 2 * -(-1000 // FOLDS)  # of both labels


def test_weights_lie_on_the_line_between_start_and_end() -> None:
    model = make_model()
    start = {name: torch.randn_like(weight) for name, weight in copy_weights(model).items()}
    end = {name: torch.randn_like(weight) for name, weight in start.items()}
    for extent in (0.0, 0.25, 1.0):
        set_extent(model, start, end, extent)
        for name, weight in model.named_parameters():
            expected = (1 - extent) * start[name].numpy() + extent * end[name].numpy()
            np.testing.assert_allclose(weight.detach().numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("share", [0.5, 0.7, 0.95])
def test_the_extent_with_the_smallest_loss_on_held_out_rows_is_chosen(share: float) -> None:
    """A model whose logits are its bias: the loss depends on the share of the labels alone."""
    labels = np.array([1] * int(300 * share) + [0] * (300 - int(300 * share)))

    def train(model: ProbeModel, kept: Positions) -> Weights:
        with torch.no_grad():
            model.classifier.bias.zero_()
            start = copy_weights(model)
            model.classifier.bias[1] = 2.0
        return start

    def logits(model: ProbeModel, held_out: Positions) -> Tensor:
        return model.classifier.bias.detach().expand(len(held_out), 2)

    chosen = choose_extent(make_model(classes=2), labels, 0, train, logits)
    ones = labels.mean()
    losses = [np.log1p(np.exp(2.0 * extent)) - ones * 2.0 * extent for extent in EXTENTS]
    assert chosen == EXTENTS[int(np.argmin(losses))]


def test_without_rows_to_hold_out_training_is_followed_to_its_end() -> None:
    states, labels = random_states(4), np.array([0, 0, 1, 2])
    assert fit_probe(make_model(), states, labels, ProbeTraining(steps=2))[1] == 1.0


def test_random_labels_lead_back_and_a_token_that_decides_leads_on() -> None:
    training = ProbeTraining(steps=150, learning_rate=1e-2)
    _, extent = fit_probe(make_model(), random_states(60), random_labels(60), training)
    assert extent < 1
    states, labels = marked_states(300, seed=0)
    assert fit_probe(make_model(classes=2), states, labels, training)[1] == 1


def test_an_extent_of_zero_is_the_linear_start() -> None:
    states, labels = random_states(40), random_labels(40)
    model, start = make_model(), make_model()
    fit_probe(model, states, labels, ProbeTraining(steps=3, extent=0.0))
    start_classifier(start, states, labels, seed=0)
    torch.testing.assert_close(probe_logits(model, states), probe_logits(start, states))
