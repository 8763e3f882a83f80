"""Generalized pooling: against the equations, by hand, and its frozen shape."""

import math

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from genpool.pooling import GeneralizedPooling
from genpool.pooling.generalized import generalized_logits
from genpool.pooling.penalties import attention_penalty, embedding_penalty, parameter_penalty

from . import reference
from .cases import (
    Case,
    assert_is_reference,
    every_mask,
    mask_of,
    random_states,
    real,
    to_numpy,
    with_garbage,
)


def equations(pooling, states, mask):
    parameters = [to_numpy(p) for p in (pooling.w1, pooling.b1, pooling.w2, pooling.b2)]
    return lambda row: reference.generalized(real(states, mask, row), *parameters)


@pytest.mark.parametrize("heads", [1, 2, 5])
@pytest.mark.parametrize(("dim", "hidden"), [(1, 1), (4, 2), (6, 9)])
@pytest.mark.parametrize("lengths", [[1], [3, 5, 1], [4, 0, 6, 2]])
def test_follows_the_equations(heads, dim, hidden, lengths):
    options = {"heads": heads, "hidden_dim": hidden}
    pooling = Case("generalized", options, heads).make(dim, torch.float64)
    mask = mask_of(lengths, max(lengths))
    states = random_states(*mask.shape, dim, dtype=torch.float64)
    pooled = pooling(with_garbage(states, mask), mask)
    assert_is_reference(pooled, mask, equations(pooling, states, mask))


def test_follows_the_equations_wherever_the_padding_stands():
    pooling = Case("generalized", {"heads": 2}, 2).make(4, torch.float64)
    mask = every_mask(5)
    states = random_states(*mask.shape, 4, dtype=torch.float64)
    pooled = pooling(with_garbage(states, mask), mask)
    assert_is_reference(pooled, mask, equations(pooling, states, mask))


def test_follows_the_equations_in_single_precision():
    pooling = Case("generalized", {"heads": 3}, 3).make(8)
    mask = mask_of([2, 7, 5], 7)
    states = random_states(3, 7, 8)
    pooled = pooling(states, mask)
    assert_is_reference(pooled, mask, equations(pooling, states, mask), tolerance=1e-6)


def hand_worked():
    """Two heads that differ only in w2. Hidden units: token 1 has (1, 0), token 2 has (0, 1)."""
    pooling = GeneralizedPooling(2, heads=2, hidden_dim=2).double()
    three, four = math.log(3), math.log(4)
    with torch.no_grad():
        pooling.w1.copy_(torch.eye(2).expand(2, 2, 2))
        pooling.b1.copy_(torch.tensor([[0.0, -1.0], [0.0, -1.0]]))
        first, second = [[three, 0.0], [0.0, four]], [[three, 0.0], [three, 0.0]]
        pooling.w2.copy_(torch.tensor([first, second], dtype=torch.float64))
        pooling.b2.copy_(torch.tensor([[5.0, -5.0], [0.0, 1.0]]))
    states = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]], dtype=torch.float64)
    return pooling, pooling(states, torch.tensor([[True, True]]))


def test_two_tokens_worked_by_hand():
    _, pooled = hand_worked()
    # Head 1: e^ln3 : e^0 = 3 : 1 in dimension 0 and e^0 : e^ln4 = 1 : 4 in dimension 1.
    # Head 2: 3 : 1 in both.
    weights = [[[3 / 4, 1 / 5], [1 / 4, 4 / 5]], [[3 / 4, 3 / 4], [1 / 4, 1 / 4]]]
    np.testing.assert_allclose(to_numpy(pooled.weights)[0], weights, rtol=0, atol=1e-12)
    # 3/4 * 1 + 1/4 * 0 and 1/5 * 0 + 4/5 * 2; then 3/4 * 1 and 1/4 * 2.
    np.testing.assert_allclose(
        to_numpy(pooled.vector), [[0.75, 1.6, 0.75, 0.5]], rtol=0, atol=1e-12
    )


def test_penalties_of_two_tokens_worked_by_hand():
    pooling, pooled = hand_worked()
    # The first layers are equal: distance 0.
    assert parameter_penalty(pooling.w1).term.item() == pytest.approx(1.0, abs=1e-12)
    # Dimension 1 differs by 3/4 - 1/5 = 0.55 at both tokens: 2 * 0.3025 = 0.605.
    assert attention_penalty(pooled.weights).term.item() == pytest.approx(0.395, abs=1e-12)
    # (1.6 - 0.5)^2 = 1.21: beyond a threshold of 1, 0.79 below one of 2.
    assert embedding_penalty(pooled.heads).term.item() == 0
    assert embedding_penalty(pooled.heads, threshold=2).term.item() == pytest.approx(
        0.79, abs=1e-12
    )


@pytest.mark.parametrize("heads", [1, 3])
def test_gradients_of_states_and_parameters(heads):
    pooling = Case("generalized", {"heads": heads, "hidden_dim": 3}, heads).make(2, torch.float64)
    names = [name for name, _ in pooling.named_parameters()]
    mask = torch.tensor([[True, True, True], [False, True, False], [False, False, False]])
    states = random_states(3, 3, 2, dtype=torch.float64).requires_grad_()

    def function(states, *parameters):
        named = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(pooling, named, (states, mask))

    parameters = [p.detach().clone().requires_grad_() for p in pooling.parameters()]
    assert torch.autograd.gradcheck(function, (states, *parameters))


def test_parameters_have_the_frozen_names_and_shapes():
    pooling = GeneralizedPooling(6, heads=3, hidden_dim=4)
    shapes = {name: tuple(tensor.shape) for name, tensor in pooling.state_dict().items()}
    assert shapes == {"w1": (3, 4, 6), "b1": (3, 4), "w2": (3, 6, 4), "b2": (3, 6)}
    assert set(shapes) == {name for name, _ in pooling.named_parameters()}


def test_there_are_five_heads_unless_said_otherwise():
    pooling = GeneralizedPooling(8)
    assert pooling.heads == 5
    assert (pooling.input_dim, pooling.output_dim) == (8, 40)


@pytest.mark.parametrize(("dim", "hidden"), [(600, 300), (7, 3), (1, 1)])
def test_hidden_layer_is_half_as_wide_as_the_states_unless_said_otherwise(dim, hidden):
    pooling = GeneralizedPooling(dim, heads=1)
    assert pooling.hidden_dim == hidden
    assert pooling.w1.shape == (1, hidden, dim)


def test_starts_as_the_released_program_does():
    torch.manual_seed(0)
    pooling = GeneralizedPooling(300, heads=2)
    for weight in (pooling.w1, pooling.w2):
        # 90,000 values: the mean strays by 0.01 / 300, the deviation by 0.01 / 424.
        assert abs(weight.mean().item()) < 5 * 0.01 / 300
        assert weight.std().item() == pytest.approx(0.01, abs=5 * 0.01 / 424)
    assert not pooling.b1.any()
    assert not pooling.b2.any()


def test_state_dict_comes_back_bit_for_bit():
    pooling = Case("generalized", {"heads": 3}, 3).make(8)
    other = GeneralizedPooling(8, heads=3)
    other.load_state_dict(load(save(pooling.state_dict())))
    for name, tensor in pooling.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor)
    states, mask = random_states(2, 5, 8), mask_of([5, 3], 5)
    assert torch.equal(other(states, mask).vector, pooling(states, mask).vector)


def test_second_bias_moves_no_weight():
    # It is the same at every token, so the softmax over tokens cancels it: A^i is as if b2 = 0.
    pooling = Case("generalized", {"heads": 2}, 2).make(4, torch.float64)
    states, mask = random_states(2, 5, 4, dtype=torch.float64), mask_of([5, 3], 5)
    before = pooling(states, mask).weights
    assert isinstance(pooling, GeneralizedPooling)
    with torch.no_grad():
        pooling.b2.add_(random_states(2, 4, dtype=torch.float64))
    torch.testing.assert_close(pooling(states, mask).weights, before, rtol=0, atol=1e-12)


def test_second_bias_is_in_the_logits():
    pooling = Case("generalized", {"heads": 2, "hidden_dim": 3}, 2).make(4, torch.float64)
    assert isinstance(pooling, GeneralizedPooling)
    parameters = (pooling.w1, pooling.b1, pooling.w2, pooling.b2)
    rows = random_states(5, 4, dtype=torch.float64)
    logits = to_numpy(generalized_logits(rows, *parameters))
    w1, b1, w2, b2 = map(to_numpy, parameters)
    for head in range(2):
        for row, token in enumerate(to_numpy(rows)):
            expected = w2[head] @ np.maximum(w1[head] @ token + b1[head], 0) + b2[head]
            np.testing.assert_allclose(logits[head, row], expected, rtol=0, atol=1e-12)
