"""CAFE's parts, each worked by hand."""

from __future__ import annotations

import pytest
import torch

from genpool.encoder import CAFEEncoder
from genpool.encoder.cafe import FactorizationMachine, Highway, intra_attention


def test_a_factorization_machine_worked_by_hand() -> None:
    machine = FactorizationMachine(3, 2)
    with torch.no_grad():
        machine.linear.weight.copy_(torch.tensor([[1.0, 2.0, 3.0]]))
        machine.linear.bias.fill_(0.5)
        machine.factors.copy_(torch.tensor([[1.0, 0.0], [2.0, 1.0], [0.0, 3.0]]))
    # u = (1, 2, -1): 0.5 + (1 + 4 - 3) + v1.v2 * 2 + v1.v3 * -1 + v2.v3 * -2
    #               = 2.5 + 2 * 2 + 0 + 3 * -2
    assert machine(torch.tensor([[1.0, 2.0, -1.0]])).tolist() == [[0.5]]


def test_a_closed_highway_carries_its_input_and_an_open_one_transforms_it() -> None:
    layer, values = Highway(4), torch.randn(5, 4)
    with torch.no_grad():
        layer.gate.weight.zero_()
        layer.gate.bias.fill_(-200)
    assert torch.equal(layer(values), values)
    with torch.no_grad():
        layer.gate.bias.fill_(200)
    torch.testing.assert_close(layer(values), layer.transform(values).relu())


def test_a_highway_carries_most_of_its_input_at_first() -> None:
    gate = Highway(3).gate.bias.sigmoid()
    assert (gate < 0.5).all() and (gate > 0.1).all()


def test_equal_keys_attend_to_the_mean_of_the_real_words() -> None:
    values = torch.tensor([[[1.0, 2.0], [3.0, 6.0], [0.0, 0.0]]])
    mask = torch.tensor([[True, True, False]])
    aligned = intra_attention(values, torch.ones(1, 3, 2), mask)
    assert aligned[0, :2].tolist() == [[2.0, 4.0], [2.0, 4.0]]


def test_a_word_alone_is_aligned_with_itself() -> None:
    """So that x - x' is zero, and its feature is the bias of that factorization machine."""
    encoder = CAFEEncoder(4, 3)
    with torch.no_grad():
        encoder.difference.linear.bias.fill_(7)
    values, keys = encoder.transformed(torch.randn(1, 1, 4))
    aligned = intra_attention(values, keys, torch.tensor([[True]]))
    torch.testing.assert_close(aligned, values)
    features = encoder.with_features(values, aligned)[0, 0, 3:]
    assert features.shape == (3,)
    assert float(features[1].detach()) == pytest.approx(7)
