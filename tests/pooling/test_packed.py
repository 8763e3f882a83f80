"""Pooling packed rows returns the vectors and gradients of pooling the padded tensor."""

import pytest
import torch

from genpool.pooling import GeneralizedPooling
from genpool.tensors.packing import Packing
from tests.helpers.gradients import gradient

from .cases import (
    CASES,
    Case,
    assert_is_reference,
    every_mask,
    mask_of,
    pool,
    pool_rows,
    random_gates,
    random_states,
    with_garbage,
)
from .test_equations import equations

every_case = pytest.mark.parametrize("case", CASES, ids=str)


def generalized(heads, dtype=torch.float64, dim=4):
    return Case("generalized", {"heads": heads, "hidden_dim": 3}, heads).make(dim, dtype)


def difference(one, other):
    return (one - other).abs().max().item()


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


@pytest.mark.parametrize("heads", [1, 3])
def test_rows_follow_the_equations_and_finite_differences(heads):
    pooling, mask = generalized(heads, dim=2), every_mask(4)
    states = random_states(*mask.shape, 2, dtype=torch.float64)
    packed = pool_rows(pooling, states, mask)
    assert packed.weights is None
    expected = equations(pooling, states, mask)
    assert_is_reference(packed, mask, lambda row: (expected(row)[0], None))
    names, mask = [name for name, _ in pooling.named_parameters()], every_mask(3)[[1, 7, 0, 5]]
    packing = Packing.from_mask(mask)

    class ByRows(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.pooling = pooling

        def forward(self, rows):
            return self.pooling.pool_rows(rows, packing).vector

    def function(rows, *parameters):
        named = {f"pooling.{name}": p for name, p in zip(names, parameters, strict=True)}
        return torch.func.functional_call(ByRows(), named, (rows,))

    rows = random_states(6, 2, dtype=torch.float64).requires_grad_()
    parameters = [p.detach().clone().requires_grad_() for p in pooling.parameters()]
    assert torch.autograd.gradcheck(function, (rows, *parameters))


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
