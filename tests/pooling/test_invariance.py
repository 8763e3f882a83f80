"""A sentence's vector is its own: no batch, order, padding, type or packed form changes it."""

import numpy as np
import pytest
import torch

from genpool.pooling import GeneralizedPooling
from genpool.pooling.base import masked_max, masked_mean, masked_softmax
from tests.helpers.gradients import gradient

from .cases import (
    ATTENTIVE,
    GATE_WIDTH,
    Case,
    difference,
    every_case,
    every_mask,
    mask_of,
    padded_and_packed,
    pool,
    pool_rows,
    random_gates,
    random_states,
    to_numpy,
    with_garbage,
)

DIM = 32


@every_case
def test_padding_order_layout_and_type_of_the_mask_do_not_matter(case):
    pooling, mask = case.make(DIM), mask_of([9, 1, 0, 5, 7, 3], 1000)
    states, gates = random_states(6, 1000, DIM).tanh(), random_gates(6, 1000)
    garbage = with_garbage(states, mask), with_garbage(gates, mask)
    plain = pool(pooling, states[:, :9], mask[:, :9], gates[:, :9])
    padded = pool(pooling, garbage[0], mask, garbage[1])
    assert difference(padded.heads, plain.heads) <= 1e-6
    for dtype in (torch.int64, torch.uint8):
        assert torch.equal(
            pool(pooling, garbage[0], mask.to(dtype), garbage[1]).vector, padded.vector
        )
    order = torch.tensor([4, 2, 5, 0, 3, 1])
    moved = [
        tensor[order, :9].transpose(0, 1).contiguous().transpose(0, 1)
        for tensor in (states, mask, gates)
    ]
    assert not moved[0].is_contiguous()
    assert difference(pool(pooling, *moved).heads, plain.heads[order]) <= 1e-6


@every_case
def test_sentence_with_no_token_gives_zeros_and_adds_nothing_to_the_gradients(case):
    def gradients(states, gates, mask):
        pooling = case.make(4)
        states, gates = states.clone().requires_grad_(), gates.clone().requires_grad_()
        pooled = pool(pooling, states, mask, gates)
        pooled.vector.square().sum().backward()
        if pooling.needs_gates:
            assert not gradient(gates)[~mask].any() and gradient(gates)[0].any()
        return pooled, states.grad, [parameter.grad for parameter in pooling.parameters()]

    mask = mask_of([3, 0, 1], 3)
    states = with_garbage(random_states(3, 3, 4), mask)
    gates = with_garbage(random_gates(3, 3), mask)
    pooled, of_states, of_parameters = gradients(states, gates, mask)
    for part in pooled:
        assert part is None or (not part[1].any() and part[0].any() and part[2].any())
    assert not of_states[~mask].any()  # NaN would be true
    kept = torch.tensor([0, 2])
    _, states_without, parameters_without = gradients(states[kept], gates[kept], mask[kept])
    assert difference(of_states[kept], states_without) <= 1e-6
    for one, other in zip(of_parameters, parameters_without, strict=True):
        assert other.isfinite().all()
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("shape", [(2, 3), (2, 0), (0, 3)], ids=str)
@every_case
@padded_and_packed
def test_batch_of_no_tokens_at_all_gives_zeros_and_finite_gradients(form, case, shape):
    pooling = case.make(4)
    states = torch.full((*shape, 4), float("nan"), requires_grad=True)
    gates = torch.full((*shape, GATE_WIDTH), float("nan"))
    pooled = form(pooling, states, torch.zeros(shape, dtype=torch.int64), gates)
    assert torch.equal(pooled.vector, torch.zeros(shape[0], 4 * case.heads))
    assert torch.equal(pooled.heads, torch.zeros(shape[0], case.heads, 4))
    assert pooled.weights is None or pooled.weights.shape[:3] == (shape[0], case.heads, shape[1])
    if not shape[1] or not shape[0]:
        return
    pooled.vector.sum().backward()
    assert not gradient(states).any()
    assert all(not parameter.grad.any() for parameter in pooling.parameters())


@pytest.mark.parametrize("case", ATTENTIVE, ids=str)
def test_weights_are_shares_of_the_real_tokens_and_exactly_zero_at_padding(case):
    mask = every_mask(5)[1:]  # every mask with a token
    states = with_garbage(random_states(*mask.shape, 4), mask)
    weights = pool(case.make(4), states, mask).weights  # (batch, heads, time, 4 or 1)
    assert weights is not None
    np.testing.assert_allclose(to_numpy(weights.sum(dim=2)), 1, rtol=0, atol=2e-6)
    at = weights.movedim(2, 1)  # (batch, time, heads, 4 or 1)
    assert (at[mask] > 0).all()
    assert not at[~mask].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@every_case
def test_result_has_the_shapes_of_the_design_and_the_type_of_the_states(case, dtype):
    pooling, mask = case.make(4, dtype), mask_of([6, 0, 2], 6)
    states, gates = random_states(3, 6, 4, dtype=dtype), random_gates(3, 6, dtype=dtype)
    before = [tensor.clone() for tensor in (states, mask, gates)]
    pooled = pool(pooling.train(), states, mask, gates)
    assert (pooling.input_dim, pooling.output_dim) == (4, 4 * case.heads)
    assert pooled.heads.shape == (3, case.heads, 4)
    assert torch.equal(pooled.vector, torch.cat(pooled.heads.unbind(dim=1), dim=1))
    width = 4 if case.name in ("generalized", "source-to-token") else 1
    shape = (3, case.heads, 6, width) if case in ATTENTIVE else None
    assert (None if pooled.weights is None else pooled.weights.shape) == shape
    assert {part.dtype for part in pooled if part is not None} == {dtype}
    assert torch.equal(pool(pooling.eval(), states, mask, gates).vector, pooled.vector)
    assert all(map(torch.equal, before, (states, mask, gates)))


@pytest.mark.parametrize("mixed", [False, True], ids=["bfloat16", "autocast"])
@every_case
@padded_and_packed
def test_half_precision_is_near_double_precision_and_has_gradients(form, case, mixed):
    dtype = torch.float32 if mixed else torch.bfloat16
    pooling, mask = case.make(4, dtype), mask_of([6, 4, 2, 0], 6)
    states = with_garbage(random_states(4, 6, 4).to(dtype), mask).requires_grad_()
    gates = with_garbage(random_gates(4, 6).to(dtype), mask)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=mixed):
        rough = form(pooling, states, mask, gates).vector
    assert mixed or rough.dtype is dtype
    rough.sum().backward()
    assert gradient(states).isfinite().all()
    exact = form(pooling.double(), states.double(), mask, gates.double()).vector
    # Eight bits of mantissa, through two products and a softmax of logits up to about 4.
    assert difference(rough.double(), exact) <= 0.05


# --- Packed rows ----------------------------------------------------------------------------------


def generalized(heads, dtype=torch.float64, dim=4):
    return Case("generalized", {"heads": heads, "hidden_dim": 3}, heads).make(dim, dtype)


@every_case
def test_rows_give_the_vectors_and_gradients_of_the_padded_tensor_for_every_mask(case):
    mask, outcomes = every_mask(6), []
    for way in (pool_rows, pool):
        pooling = case.make(4, torch.float64)
        states = with_garbage(random_states(*mask.shape, 4, dtype=torch.float64), mask)
        gates = with_garbage(random_gates(*mask.shape, dtype=torch.float64), mask)
        states.requires_grad_(), gates.requires_grad_()
        before = states.detach().clone()
        pooled = way(pooling, states, mask, gates)
        torch.testing.assert_close(states.detach(), before, rtol=0, atol=0, equal_nan=True)
        leaves = [states, *pooling.parameters(), *([gates] if pooling.needs_gates else [])]
        with torch.no_grad():  # another form: all heads together
            without = way(pooling, states, mask, gates).vector
        torch.testing.assert_close(without, pooled.vector.detach(), rtol=0, atol=1e-12)
        gradients = torch.autograd.grad(pooled.vector.square().sum(), leaves)
        outcomes.append([pooled.vector, pooled.heads, *gradients])
    torch.testing.assert_close(outcomes[0], outcomes[1], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("mixed", [False, True], ids=["throughout", "by autocast"])
def test_long_sentence_in_bfloat16_is_pooled_to_its_end(mixed):
    # With w2 = 0 it is the mean: 300 zeros and 900 ones. A running sum of bfloat16 stops at 256.
    pooling = GeneralizedPooling(2, heads=1)
    with torch.no_grad():
        pooling.w2.zero_()
    states = (torch.arange(1200) >= 300).float().view(1, 1200, 1).expand(1, 1200, 2)
    if not mixed:
        pooling, states = pooling.bfloat16(), states.bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=mixed):
        packed = pool_rows(pooling, states, torch.ones(1, 1200, dtype=torch.bool))
    assert packed.vector[0].tolist() == pytest.approx([0.75, 0.75], abs=0.01)


@pytest.mark.parametrize("factor", [1e-6, 1.0, 30.0, 100.0, 1e6])
@pytest.mark.parametrize("sign", ["mixed", "positive", "negative"])
def test_huge_logits_choose_and_do_not_overflow(factor, sign):
    """Where all logits are far below zero, nothing may vanish either."""
    pooling, mask = generalized(2, torch.float32), mask_of([5, 3], 5)
    with torch.no_grad():
        pooling.b1.add_(1.0)
        if sign != "mixed":
            pooling.w2.abs_().mul_(1.0 if sign == "positive" else -1.0)
        pooling.w2.mul_(factor)
    states = random_states(2, 5, 4).requires_grad_()
    packed = pool_rows(pooling, states, mask)
    assert difference(packed.vector, pooling(states, mask).vector) <= 1e-6
    packed.vector.sum().backward()
    assert gradient(states).isfinite().all()


def test_a_second_backward_pass_and_a_frozen_pooling_give_the_same_gradients():
    pooling, mask = generalized(2), mask_of([5, 3], 5)
    states = random_states(2, 5, 4, dtype=torch.float64).requires_grad_()
    loss = pool_rows(pooling, states, mask).vector.square().sum()
    leaves = [states, *pooling.parameters()]
    first = torch.autograd.grad(loss, leaves, retain_graph=True)
    assert all(map(torch.equal, first, torch.autograd.grad(loss, leaves)))
    pooling.requires_grad_(False)
    frozen = pool_rows(pooling, states, mask).vector.square().sum()
    torch.testing.assert_close(torch.autograd.grad(frozen, states)[0], first[0])


# --- The reductions -------------------------------------------------------------------------------


def test_softmax_of_huge_logits_is_a_choice_and_not_nan():
    logits = torch.tensor([[[1e30], [-1e30], [3e38]]])
    mask = torch.tensor([[True, True, False]])
    assert masked_softmax(logits, mask).flatten().tolist() == [1, 0, 0]


def test_softmax_takes_any_number_of_dimensions_before_time():
    mask = mask_of([3, 1], 3)
    logits = random_states(2, 5, 4, 3, 2, dtype=torch.float64)
    weights = masked_softmax(logits, mask)
    for b, length in enumerate([3, 1]):
        powers = np.exp(to_numpy(logits)[b, :, :, :length])
        expected = powers / powers.sum(axis=2, keepdims=True)
        np.testing.assert_allclose(to_numpy(weights)[b, :, :, :length], expected, 0, 1e-12)
        assert not weights[b, :, :, length:].any()


def test_padding_never_wins_a_maximum_and_is_not_counted_in_a_mean():
    states = torch.tensor([[[-3.0], [-2.0], [0.0]]])
    assert masked_max(states, torch.tensor([[True, True, False]])).item() == -2
    infinite = torch.full((1, 2, 1), float("-inf"))
    assert masked_max(infinite, torch.tensor([[True, False]])).item() == float("-inf")
    states = torch.tensor([[[2.0], [4.0], [9.0], [9.0]]])
    assert masked_mean(states, torch.tensor([[True, True, False, False]])).item() == 3


def test_tokens_that_share_a_maximum_share_its_gradient():
    states = torch.tensor([[[2.0], [2.0], [2.0]]], requires_grad=True)
    masked_max(states, torch.tensor([[True, True, False]])).sum().backward()
    assert gradient(states).flatten().tolist() == [0.5, 0.5, 0]
