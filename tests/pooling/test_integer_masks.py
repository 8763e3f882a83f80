"""A mask of 0 and 1, as every tokenizer returns it, is the boolean mask."""

import pytest
import torch

from .cases import CASES, GATE_WIDTH, every_mask, pool, random_gates, random_states, with_garbage

TIME, DIM = 4, 6


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.int8], ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_zeros_and_ones_are_the_same_mask_as_booleans(case, dtype):
    mask = every_mask(TIME)
    states = with_garbage(random_states(len(mask), TIME, DIM), mask)
    gates = random_gates(len(mask), TIME)
    pooling = case.make(DIM)
    expected = pool(pooling, states, mask, gates)
    actual = pool(pooling, states, mask.to(dtype), gates)
    assert torch.equal(actual.vector, expected.vector)
    assert torch.equal(actual.heads, expected.heads)
    assert (actual.weights is None) == (expected.weights is None)
    if actual.weights is not None and expected.weights is not None:
        assert torch.equal(actual.weights, expected.weights)
    assert gates.shape[-1] == GATE_WIDTH


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_batch_without_tokens_may_have_a_mask_of_integers(case):
    states, mask = random_states(2, 0, DIM), torch.zeros(2, 0, dtype=torch.int64)
    assert not pool(case.make(DIM), states, mask, random_gates(2, 0)).vector.any()


def test_the_mask_of_the_caller_is_not_changed():
    mask = torch.tensor([[1, 1, 0]])
    pool(CASES[0].make(DIM), random_states(1, 3, DIM), mask)
    assert mask.dtype is torch.int64 and mask.tolist() == [[1, 1, 0]]
