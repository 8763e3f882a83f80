"""Every pooling against its equations in NumPy, worked by hand, and its gradients."""

import math

import numpy as np
import pytest
import torch

from genpool.pooling import (
    GatedPooling,
    GeneralizedPooling,
    InnerAttentionPooling,
    LastPooling,
    MaxPooling,
    MeanMaxPooling,
    MeanPooling,
    ScalarAttentionPooling,
    SourceToTokenPooling,
)
from genpool.pooling.generalized import generalized_logits
from genpool.pooling.penalties import attention_penalty, embedding_penalty, parameter_penalty
from tests.helpers.gradients import gradient

from . import reference
from .cases import (
    Case,
    assert_is_reference,
    every_case,
    every_mask,
    mask_of,
    padded_and_packed,
    random_gates,
    random_states,
    real,
    to_numpy,
    with_garbage,
)


def equations(pooling, states, mask, gates=None):
    """The reference of a pooling, as a function of the sentence's row."""

    def expected(row):
        tokens = real(states, mask, row)
        match pooling:
            case GeneralizedPooling():
                parameters = (pooling.w1, pooling.b1, pooling.w2, pooling.b2)
                return reference.generalized(tokens, *map(to_numpy, parameters))
            case ScalarAttentionPooling():
                return reference.scalar(tokens, to_numpy(pooling.w1), to_numpy(pooling.w2))
            case InnerAttentionPooling():
                matrices = (pooling.wy, pooling.wh, pooling.w)
                return reference.inner(tokens, *map(to_numpy, matrices))
            case SourceToTokenPooling():
                one, two = pooling.first, pooling.second
                layers = (one.weight, one.bias, two.weight, two.bias)
                return reference.source_to_token(tokens, *map(to_numpy, layers))
            case GatedPooling():
                return reference.gated(tokens, real(gates, mask, row))
            case MaxPooling():
                return reference.maximum(tokens)
            case MeanPooling():
                return reference.mean(tokens)
            case LastPooling():
                return reference.last(tokens, pooling.bidirectional)
            case MeanMaxPooling():
                return reference.mean_max(tokens)
        raise AssertionError(f"no reference for {pooling}")

    return expected


@pytest.mark.parametrize(
    ("dim", "mask", "dtype"),
    [
        (2, mask_of([1], 1), torch.float64),
        (6, mask_of([4, 0, 6, 2], 6), torch.float64),
        (2, every_mask(5), torch.float64),
        (8, mask_of([2, 7, 5], 7), torch.float32),
    ],
    ids=["one token", "right padding", "any padding", "single precision"],
)
@every_case
@padded_and_packed
def test_follows_the_equations(form, case, dim, mask, dtype):
    pooling = case.make(dim, dtype)
    states, gates = (
        make(*mask.shape, *more, dtype=dtype)
        for make, more in ((random_states, (dim,)), (random_gates, ()))
    )
    pooled = form(pooling, with_garbage(states, mask), mask, with_garbage(gates, mask))
    tolerance = 1e-12 if dtype is torch.float64 else 1e-6
    assert_is_reference(pooled, mask, equations(pooling, states, mask, gates), tolerance)


@pytest.mark.parametrize(("heads", "dim", "hidden"), [(1, 1, 1), (2, 4, 2), (5, 6, 9)])
def test_generalized_pooling_of_any_size_follows_the_equations(heads, dim, hidden):
    options = {"heads": heads, "hidden_dim": hidden}
    pooling = Case("generalized", options, heads).make(dim, torch.float64)
    mask = mask_of([4, 0, 6, 1], 6)
    states = random_states(*mask.shape, dim, dtype=torch.float64)
    pooled = pooling(with_garbage(states, mask), mask)
    assert_is_reference(pooled, mask, equations(pooling, states, mask))


class ByForm(torch.nn.Module):
    def __init__(self, form, pooling):
        super().__init__()
        self.form, self.pooling = form, pooling

    def forward(self, *arguments):
        return self.form(self.pooling, *arguments)


@every_case
@padded_and_packed
def test_gradients_of_states_gates_and_parameters(form, case):
    pooling = ByForm(form, case.make(4, torch.float64))
    names = [name for name, _ in pooling.named_parameters()]
    mask = torch.tensor([[True, True, True], [False, True, False], [False, False, False]])
    states = random_states(3, 3, 4, dtype=torch.float64).requires_grad_()
    gates = random_gates(3, 3, dtype=torch.float64).requires_grad_()
    extra = (gates,) if pooling.pooling.needs_gates else ()

    def function(states, *rest):
        arguments = (states, mask, *rest[: len(extra)])
        parameters = dict(zip(names, rest[len(extra) :], strict=True))
        pooled = torch.func.functional_call(pooling, parameters, arguments)
        return tuple(part for part in pooled if part is not None)

    parameters = [p.detach().clone().requires_grad_() for p in pooling.parameters()]
    assert torch.autograd.gradcheck(function, (states, *extra, *parameters))


# --- Worked by hand -------------------------------------------------------------------------------


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
    np.testing.assert_allclose(to_numpy(pooled.vector), [[0.75, 1.6, 0.75, 0.5]], 0, 1e-12)


def test_penalties_of_two_tokens_worked_by_hand():
    pooling, pooled = hand_worked()
    # The first layers are equal: distance 0.
    assert parameter_penalty(pooling.w1).term.item() == pytest.approx(1.0, abs=1e-12)
    # Dimension 1 differs by 3/4 - 1/5 = 0.55 at both tokens: 2 * 0.3025 = 0.605.
    assert attention_penalty(pooled.weights).term.item() == pytest.approx(0.395, abs=1e-12)
    # (1.6 - 0.5)^2 = 1.21: beyond a threshold of 1, 0.79 below one of 2.
    assert embedding_penalty(pooled.heads).term.item() == 0
    assert embedding_penalty(pooled.heads, 2).term.item() == pytest.approx(0.79, abs=1e-12)


def test_max_mean_and_last_of_three_tokens_worked_by_hand():
    states = torch.tensor([[[-1.0, -8.0], [-4.0, -2.0], [-7.0, -5.0], [0.0, 0.0]]])
    mask = torch.tensor([[True, True, True, False]])
    assert MaxPooling(2)(states, mask).vector.tolist() == [[-1, -2]]
    assert MeanPooling(2)(states, mask).vector.tolist() == [[-4, -5]]
    assert LastPooling(2)(states, mask).vector.tolist() == [[-7, -8]]
    assert LastPooling(2, bidirectional=False)(states, mask).vector.tolist() == [[-7, -5]]
    assert MeanMaxPooling(2)(states, mask).vector.tolist() == [[-4, -5, -1, -2]]


def test_gated_pooling_worked_by_hand():
    states = torch.tensor([[[1.0, 0.0], [5.0, 8.0]]])
    gates = torch.tensor([[[0.3, 0.4], [0.9, 1.2]]])  # norms 0.5 and 1.5: shares 1/4 and 3/4
    pooled = GatedPooling(2)(states, torch.tensor([[True, True]]), gates)
    np.testing.assert_allclose(to_numpy(pooled.heads)[0], [[3, 4], [5, 8], [4, 6]], 0, 1e-6)


def test_closed_gates_give_zeros_and_not_nan():
    states = random_states(1, 3, 2).requires_grad_()
    gates = torch.zeros(1, 3, 4, requires_grad=True)
    pooled = GatedPooling(2)(states, torch.ones(1, 3, dtype=torch.bool), gates)
    assert pooled.heads[0, 2].tolist() == [0, 0]
    pooled.vector.sum().backward()
    assert gradient(states).isfinite().all()
    assert gradient(gates).isfinite().all()


def test_second_bias_is_in_the_logits_and_moves_no_weight():
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
    # It is the same at every token, so the softmax over tokens cancels it: A^i is as if b2 = 0.
    states, mask = random_states(2, 5, 4, dtype=torch.float64), mask_of([5, 3], 5)
    before = pooling(states, mask).weights
    with torch.no_grad():
        pooling.b2.add_(random_states(2, 4, dtype=torch.float64))
    torch.testing.assert_close(pooling(states, mask).weights, before, rtol=0, atol=1e-12)
