"""Pooling without one token: the closed forms against really leaving the token out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from genpool.pooling import POOLINGS, GeneralizedPooling, Pooling
from genpool.pooling.base import sum_of_others

from .cases import every_case, every_mask, pool, random_gates, random_states, with_garbage


def heads_without(
    pooling: Pooling, states: Tensor, mask: Tensor, gates: Tensor | None = None
) -> Tensor:
    return pooling.heads_without(states, mask, gates if pooling.needs_gates else None)


def pooled_again(pooling: Pooling, states: Tensor, mask: Tensor, gates: Tensor) -> np.ndarray:
    """Every sentence without padding, its tokens deleted one by one, and pooled by itself."""
    batch, time, dim = states.shape
    expected = np.zeros((batch, pooling.heads, time, dim))
    for sentence in range(batch):
        places = mask[sentence].nonzero().flatten().tolist()
        for left_out in places:
            rest = [place for place in places if place != left_out]
            if rest:
                alone = pool(
                    pooling,
                    states[sentence : sentence + 1, rest],
                    torch.ones(1, len(rest), dtype=torch.bool),
                    gates[sentence : sentence + 1, rest],
                )
                expected[sentence, :, left_out] = alone.heads[0].detach().numpy()
    return expected


@every_case
def test_equals_pooling_the_other_tokens(case) -> None:
    pooling = case.make(6, torch.float64)
    mask = every_mask(5)  # also sentences of one token, and of none
    states = random_states(len(mask), 5, 6, dtype=torch.float64)
    gates = random_gates(len(mask), 5, dtype=torch.float64)
    without = heads_without(pooling, states, mask, gates).detach().numpy()
    expected = pooled_again(pooling, states, mask, gates)
    np.testing.assert_allclose(without, expected, rtol=0, atol=1e-12)


@every_case
def test_padding_and_the_type_of_the_mask_have_no_part_in_it(case) -> None:
    pooling, mask = case.make(4), every_mask(4)
    states, gates = random_states(len(mask), 4, 4), random_gates(len(mask), 4)
    clean = heads_without(pooling, states, mask, gates)
    assert torch.equal(clean, heads_without(pooling, with_garbage(states, mask), mask, gates))
    assert torch.equal(clean, heads_without(pooling, states, mask.long(), gates))
    empty = torch.ones(2, 0, dtype=torch.bool)
    without = heads_without(pooling, torch.zeros(2, 0, 4), empty, torch.zeros(2, 0, 3))
    assert without.shape == (2, case.heads, 0, 4)


@pytest.mark.parametrize("gap", [1.0, 20.0, 60.0, 90.0, 200.0, 1e4])
def test_a_token_with_nearly_all_weight_leaves_the_others_exact(gap: float) -> None:
    """Its weight rounds to 1 at a gap of 20; at 90 the others' weights are 0 in single precision.

    The logits of a token are `gap` times its first dimension.
    """
    pooling = GeneralizedPooling(2, heads=1, hidden_dim=1)
    with torch.no_grad():
        pooling.w1.copy_(torch.tensor([[[1.0, 0.0]]]))
        pooling.w2.fill_(gap)
        pooling.b1.zero_()
        pooling.b2.zero_()
    states = torch.tensor([[[1.0, 5.0], [0.0, 2.0], [0.001, -3.0]]])
    without = pooling.heads_without(states, torch.ones(1, 3, dtype=torch.bool))[0, 0, 0]
    share = 1 / (1 + np.exp(min(gap * 0.001, 700.0)))  # of the second token
    expected = share * np.array([0.0, 2.0]) + (1 - share) * np.array([0.001, -3.0])
    np.testing.assert_allclose(without.detach().numpy(), expected, rtol=0, atol=2e-5)


def test_the_sum_of_others_adds_and_never_subtracts() -> None:
    values = torch.tensor([[1e8], [1.0], [2.0], [4.0]])
    assert sum_of_others(values)[0] == 7
    assert values.sum() - values[0] != 7  # in single precision, subtracting loses it
    small = torch.tensor([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]])
    assert sum_of_others(small).tolist() == [[6, 60], [5, 50], [3, 30]]


def test_the_maximum_without_its_token_is_the_second() -> None:
    states = torch.tensor([[[1.0, 9.0], [3.0, 9.0], [2.0, 0.0]]])
    without = POOLINGS["max"](2).heads_without(states, torch.ones(1, 3, dtype=torch.bool))
    assert without.tolist() == [[[[3.0, 9.0], [2.0, 9.0], [3.0, 9.0]]]]
