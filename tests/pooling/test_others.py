"""The poolings that the paper compares with: against their equations, and their gradients."""

import numpy as np
import pytest
import torch

from genpool.pooling import (
    GatedPooling,
    InnerAttentionPooling,
    LastPooling,
    MaxPooling,
    MeanMaxPooling,
    MeanPooling,
    ScalarAttentionPooling,
    SourceToTokenPooling,
)
from tests.helpers.gradients import gradient

from . import reference
from .cases import (
    CASES,
    WITH_PARAMETERS,
    Case,
    assert_is_reference,
    every_mask,
    mask_of,
    pool,
    random_gates,
    random_states,
    real,
    to_numpy,
    with_garbage,
)

MASKS = {
    "one token": mask_of([1], 1),
    "right padding": mask_of([4, 0, 6, 2], 6),
    "any padding": every_mask(4),
}


def equations(pooling, states, mask, gates):
    """The reference of any pooling but the generalized, as a function of the sentence's row."""

    def expected(row):
        tokens = real(states, mask, row)
        match pooling:
            case ScalarAttentionPooling():
                return reference.scalar(tokens, to_numpy(pooling.w1), to_numpy(pooling.w2))
            case InnerAttentionPooling():
                matrices = (pooling.wy, pooling.wh, pooling.w)
                return reference.inner(tokens, *map(to_numpy, matrices))
            case SourceToTokenPooling():
                one, two = pooling.first, pooling.second
                parameters = (one.weight, one.bias, two.weight, two.bias)
                return reference.source_to_token(tokens, *map(to_numpy, parameters))
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


OTHERS = [case for case in CASES if case.name != "generalized"]


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("dim", [2, 6])
@pytest.mark.parametrize("case", OTHERS, ids=str)
def test_follows_the_equations(case, dim, mask):
    pooling = case.make(dim, torch.float64)
    states = random_states(*mask.shape, dim, dtype=torch.float64)
    gates = random_gates(*mask.shape, dtype=torch.float64)
    pooled = pool(pooling, with_garbage(states, mask), mask, with_garbage(gates, mask))
    assert_is_reference(pooled, mask, equations(pooling, states, mask, gates))


@pytest.mark.parametrize("case", OTHERS, ids=str)
def test_follows_the_equations_in_single_precision(case):
    pooling = case.make(8)
    mask = mask_of([2, 7, 5], 7)
    states, gates = random_states(3, 7, 8), random_gates(3, 7)
    pooled = pool(pooling, states, mask, gates)
    assert_is_reference(pooled, mask, equations(pooling, states, mask, gates), tolerance=1e-6)


@pytest.mark.parametrize("case", OTHERS, ids=str)
def test_gradients_of_states_gates_and_parameters(case):
    pooling = case.make(4, torch.float64)
    names = [name for name, _ in pooling.named_parameters()]
    mask = torch.tensor([[True, True, True], [False, True, False], [False, False, False]])
    states = random_states(3, 3, 4, dtype=torch.float64).requires_grad_()
    gates = random_gates(3, 3, dtype=torch.float64).requires_grad_()
    extra = (gates,) if pooling.needs_gates else ()

    def function(states, *rest):
        arguments = (states, mask, *rest[: len(extra)])
        parameters = dict(zip(names, rest[len(extra) :], strict=True))
        pooled = torch.func.functional_call(pooling, parameters, arguments)
        return tuple(part for part in pooled if part is not None)

    parameters = [p.detach().clone().requires_grad_() for p in pooling.parameters()]
    assert torch.autograd.gradcheck(function, (states, *extra, *parameters))


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


def test_gated_pooling_takes_gates_of_any_width():
    states, mask = random_states(2, 3, 4, dtype=torch.float64), mask_of([3, 2], 3)
    for width in (1, 7):
        gates = random_states(2, 3, width, dtype=torch.float64).sigmoid()
        pooled = GatedPooling(4)(states, mask, gates)
        rows = (0, 1)
        expected = [
            reference.gated(real(states, mask, row), real(gates, mask, row))[0] for row in rows
        ]
        np.testing.assert_allclose(to_numpy(pooled.heads), expected, 0, 1e-12)


def test_closed_gates_give_zeros_and_not_nan():
    states = random_states(1, 3, 2).requires_grad_()
    gates = torch.zeros(1, 3, 4, requires_grad=True)
    pooled = GatedPooling(2)(states, torch.ones(1, 3, dtype=torch.bool), gates)
    assert pooled.heads[0, 2].tolist() == [0, 0]
    pooled.vector.sum().backward()
    assert gradient(states).isfinite().all()
    assert gradient(gates).isfinite().all()


@pytest.mark.parametrize("case", WITH_PARAMETERS, ids=str)
def test_every_parameter_but_a_last_bias_gets_a_gradient(case):
    pooling = case.make(4)
    pool(pooling, random_states(2, 5, 4), mask_of([5, 3], 5)).vector.square().sum().backward()
    for name, parameter in pooling.named_parameters():
        if name in ("b2", "second.bias"):  # the same at every token: the softmax cancels it
            continue
        assert parameter.grad.any(), name


def test_parameter_shapes_of_the_attention_poolings():
    def shapes(pooling):
        return {name: tuple(parameter.shape) for name, parameter in pooling.named_parameters()}

    assert shapes(ScalarAttentionPooling(6, heads=3, hidden_dim=4)) == {"w1": (4, 6), "w2": (3, 4)}
    assert shapes(InnerAttentionPooling(6)) == {"wy": (6, 6), "wh": (6, 6), "w": (6,)}
    assert sorted(shapes(SourceToTokenPooling(6)).values()) == [(6,), (6,), (6, 6), (6, 6)]


def test_scalar_attention_hides_in_half_the_width_unless_said_otherwise():
    assert ScalarAttentionPooling(10).w1.shape == (5, 10)
    assert ScalarAttentionPooling(10).heads == 5


@pytest.mark.parametrize("name", ["gated", "max", "mean", "last", "mean-max"])
def test_poolings_without_attention_have_no_parameters(name):
    assert list(Case(name, {}, 1).make(4).parameters()) == []
