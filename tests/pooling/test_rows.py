"""Pooling packed rows returns the same as pooling the padded tensor."""

import pytest
import torch

from genpool.pooling import GeneralizedPooling
from genpool.tensors.packing import Packing
from tests.helpers.gradients import gradient

from . import reference
from .cases import (
    CASES,
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

every_case = pytest.mark.parametrize("case", CASES, ids=str)
one_head_and_several = pytest.mark.parametrize("heads", [1, 3])


def pool_rows(pooling, states, mask, gates=None):
    packing = Packing.from_mask(mask)
    rows = packing.pack(states)
    gates = packing.pack(gates) if pooling.needs_gates else None
    return pooling.pool_rows(rows, packing, gates)


def generalized(heads, dtype=torch.float64):
    return Case("generalized", {"heads": heads, "hidden_dim": 3}, heads).make(4, dtype)


def difference(one, other):
    return (one - other).abs().max().item()


@every_case
def test_rows_give_the_vectors_of_the_padded_tensor_for_every_mask(case):
    pooling, mask = case.make(4, torch.float64), every_mask(6)
    states = with_garbage(random_states(*mask.shape, 4, dtype=torch.float64), mask)
    gates = with_garbage(random_gates(*mask.shape, dtype=torch.float64), mask)
    padded, packed = pool(pooling, states, mask, gates), pool_rows(pooling, states, mask, gates)
    torch.testing.assert_close(packed.vector, padded.vector, rtol=0, atol=1e-12)
    torch.testing.assert_close(packed.heads, padded.heads, rtol=0, atol=1e-12)


@one_head_and_several
def test_rows_follow_the_equations(heads):
    pooling, mask = generalized(heads), every_mask(5)
    states = random_states(*mask.shape, 4, dtype=torch.float64)
    packed = pool_rows(pooling, states, mask)
    assert packed.weights is None
    parameters = [to_numpy(p) for p in (pooling.w1, pooling.b1, pooling.w2, pooling.b2)]

    def expected(row):
        return reference.generalized(real(states, mask, row), *parameters)[0], None

    assert_is_reference(packed, mask, expected)


@one_head_and_several
def test_gradients_of_rows_and_parameters(heads):
    pooling = Case("generalized", {"heads": heads, "hidden_dim": 3}, heads).make(2, torch.float64)
    names = [name for name, _ in pooling.named_parameters()]
    mask = torch.tensor(
        [[False, True, False], [True, True, True], [False] * 3, [True, False, True]]
    )
    packing = Packing.from_mask(mask)
    rows = random_states(6, 2, dtype=torch.float64).requires_grad_()

    class ByRows(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.pooling = pooling

        def forward(self, rows):
            return self.pooling.pool_rows(rows, packing).vector

    by_rows = ByRows()

    def function(rows, *parameters):
        named = {f"pooling.{name}": p for name, p in zip(names, parameters, strict=True)}
        return torch.func.functional_call(by_rows, named, (rows,))

    parameters = [p.detach().clone().requires_grad_() for p in pooling.parameters()]
    assert torch.autograd.gradcheck(function, (rows, *parameters))


@every_case
def test_rows_give_the_gradients_of_the_padded_tensor(case):
    def gradients(way):
        pooling, mask = case.make(4, torch.float64), every_mask(4)
        states = random_states(*mask.shape, 4, dtype=torch.float64).requires_grad_()
        gates = random_gates(*mask.shape, dtype=torch.float64).requires_grad_()
        loss = way(pooling, states, mask, gates).vector.square().sum()
        leaves = [states, *pooling.parameters(), *([gates] if pooling.needs_gates else [])]
        return torch.autograd.grad(loss, leaves)

    for packed, padded in zip(gradients(pool_rows), gradients(pool), strict=True):
        torch.testing.assert_close(packed, padded, rtol=1e-10, atol=1e-12)


@every_case
def test_same_vector_alone_and_in_any_batch(case):
    pooling = case.make(32)
    mask = mask_of([20, 1, 0, 7, 7, 12], 20)
    states, gates = random_states(6, 20, 32).tanh(), random_gates(6, 20)
    batch = pool_rows(pooling, states, mask, gates).vector
    order = torch.tensor([4, 2, 5, 0, 3, 1])
    shuffled = pool_rows(pooling, states[order], mask[order], gates[order]).vector
    assert difference(shuffled, batch[order]) <= 1e-6
    for b in range(6):
        own = slice(b, b + 1)
        alone = pool_rows(pooling, states[own], mask[own], gates[own]).vector
        assert difference(alone, batch[own]) <= 1e-6
        assert difference(pool(pooling, states[own], mask[own], gates[own]).vector, alone) <= 1e-6


@every_case
@pytest.mark.parametrize("shape", [(2, 3), (2, 0), (0, 3)], ids=str)
def test_batch_of_no_tokens_at_all_gives_zeros(case, shape):
    pooling, mask = case.make(4), torch.zeros(shape, dtype=torch.bool)
    packed = pool_rows(pooling, random_states(*shape, 4), mask, random_gates(*shape))
    assert torch.equal(packed.vector, torch.zeros(shape[0], 4 * case.heads))
    assert torch.equal(packed.heads, torch.zeros(shape[0], case.heads, 4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@every_case
def test_rows_keep_their_type(case, dtype):
    mask = mask_of([6, 0, 2], 6)
    states, gates = random_states(3, 6, 4, dtype=dtype), random_gates(3, 6, dtype=dtype)
    packed = pool_rows(case.make(4, dtype), states, mask, gates)
    assert packed.vector.dtype == packed.heads.dtype == dtype


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


@every_case
def test_automatic_mixed_precision_is_near_double_precision(case):
    pooling, mask = case.make(4), mask_of([6, 4, 0], 6)
    states, gates = random_states(3, 6, 4).requires_grad_(), random_gates(3, 6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = pool_rows(pooling, states, mask, gates).vector
    mixed.sum().backward()
    assert gradient(states).isfinite().all()
    exact = pool_rows(pooling.double(), states.double(), mask, gates.double()).vector
    assert difference(mixed.double(), exact) <= 0.05


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


@every_case
def test_rows_and_gates_are_left_as_they_were(case):
    pooling, packing = case.make(4), Packing.from_mask(mask_of([6, 0, 2], 6))
    rows, gates = random_states(8, 4), random_states(8, 3).sigmoid()
    before = rows.clone(), gates.clone()
    pooling.pool_rows(rows, packing, gates if pooling.needs_gates else None)
    assert torch.equal(rows, before[0])
    assert torch.equal(gates, before[1])


def test_second_pass_back_gives_the_same_gradients():
    pooling, mask = generalized(2), mask_of([5, 3], 5)
    states = random_states(2, 5, 4, dtype=torch.float64).requires_grad_()
    loss = pool_rows(pooling, states, mask).vector.square().sum()
    leaves = [states, *pooling.parameters()]
    first = torch.autograd.grad(loss, leaves, retain_graph=True)
    second = torch.autograd.grad(loss, leaves)
    assert all(map(torch.equal, first, second))


def test_frozen_pooling_still_passes_the_gradient_to_the_rows():
    pooling, mask = generalized(2).requires_grad_(False), mask_of([5, 3], 5)
    states = random_states(2, 5, 4, dtype=torch.float64).requires_grad_()
    (by_rows,) = torch.autograd.grad(pool_rows(pooling, states, mask).vector.sum(), states)
    (padded,) = torch.autograd.grad(pooling(states, mask).vector.sum(), states)
    torch.testing.assert_close(by_rows, padded, rtol=0, atol=1e-12)


def test_gated_pooling_of_rows_needs_gates_too():
    pooling = next(case for case in CASES if case.name == "gated").make(4)
    packing = Packing.from_mask(mask_of([2], 2))
    with pytest.raises(ValueError, match="without gates"):
        pooling.pool_rows(random_states(2, 4), packing)
