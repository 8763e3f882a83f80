"""Attention between listed pairs, against the same equation on padded tensors."""

from __future__ import annotations

import pytest
import torch

from genpool.encoder import disan, pair_attention
from genpool.encoder.pair_attention import Pairs, attend_pairs, directed_pairs
from genpool.tensors.fast import fast_paths
from genpool.tensors.packing import Packing

ROWS, DIM = 6, 3


def tensors(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sources, keys and queries."""
    random = torch.Generator().manual_seed(seed)
    sources, keys, queries = (
        torch.randn(ROWS, DIM, dtype=torch.float64, generator=random).requires_grad_()
        for _ in range(3)
    )
    return sources, keys, queries


def some_pairs(seed: int = 0) -> tuple[Pairs, torch.Tensor]:
    """Random pairs, and the same as a mask (rows, rows); row 4 attends to none."""
    random = torch.Generator().manual_seed(seed)
    allowed = torch.rand(ROWS, ROWS, generator=random) < 0.5
    allowed[4] = False
    return Pairs(*allowed.nonzero(as_tuple=True)), allowed


@pytest.mark.parametrize("block", [1, 7, pair_attention.MAX_BLOCK_VALUES])
def test_listed_pairs_give_what_a_mask_gives(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_attention, "MAX_BLOCK_VALUES", block)
    sources, keys, queries = tensors()
    pairs, allowed = some_pairs()
    seen = attend_pairs(sources, keys, queries, pairs)
    batch = (tensor.unsqueeze(0) for tensor in (sources, keys, queries, allowed))
    expected = disan.attend(*batch)[0]
    torch.testing.assert_close(seen, expected, rtol=0, atol=1e-12)
    assert not seen[4].any()


def test_the_plain_form_gives_what_a_mask_gives() -> None:
    sources, keys, queries = tensors()
    pairs, allowed = some_pairs()
    with fast_paths(False):
        seen = attend_pairs(sources, keys, queries, pairs)
    batch = (tensor.unsqueeze(0) for tensor in (sources, keys, queries, allowed))
    torch.testing.assert_close(seen, disan.attend(*batch)[0], rtol=0, atol=1e-12)


def test_rounding_in_single_precision_is_small_for_logits_of_all_sizes() -> None:
    """Sigmoid and exp2 instead of tanh and exp, on sums between -40 and 40."""
    keys = torch.linspace(-20, 20, 60).unsqueeze(1).expand(60, 7)
    queries = keys.flip(0) * torch.linspace(-1, 1, 7)
    sources = torch.sin(torch.arange(420.0)).view(60, 7)
    pairs = Pairs(*torch.ones(60, 60).nonzero(as_tuple=True))
    seen = attend_pairs(sources, keys, queries, pairs)
    allowed = torch.ones(1, 60, 60, dtype=torch.bool)
    wide = (tensor.double().unsqueeze(0) for tensor in (sources, keys, queries))
    expected = disan.attend(*(*wide, allowed))[0]
    torch.testing.assert_close(seen.double(), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("block", [1, pair_attention.MAX_BLOCK_VALUES])
def test_gradients_are_those_of_finite_differences(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_attention, "MAX_BLOCK_VALUES", block)
    pairs, _ = some_pairs()
    assert torch.autograd.gradcheck(
        lambda sources, keys, queries: attend_pairs(sources, keys, queries, pairs), tensors(seed=1)
    )


def test_a_pair_worked_by_hand() -> None:
    sources = torch.tensor([[1.0], [3.0], [0.0]])
    keys = torch.tensor([[1e6], [-1e6], [0.0]])  # logits 5 and -5
    pairs = Pairs(torch.tensor([2, 2]), torch.tensor([0, 1]))
    seen = attend_pairs(sources, keys, torch.zeros(3, 1), pairs)
    high, low = torch.tensor([5.0, -5.0], dtype=torch.float64).exp().tolist()
    assert seen.flatten().tolist() == pytest.approx([0, 0, (high + 3 * low) / (high + low)])


def test_no_pairs_give_zeros_and_zero_gradients() -> None:
    none = Pairs(torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long))
    values = tensors()
    seen = attend_pairs(*values, none)
    assert torch.equal(seen, torch.zeros(ROWS, DIM, dtype=torch.float64))
    seen.sum().backward()
    assert all(value.grad is not None and not value.grad.any() for value in values)


def test_half_precision_is_summed_in_single_precision() -> None:
    """400 equal pairs: a sum in 8 bits stops growing at 256."""
    sources = torch.ones(400, 1).bfloat16()
    zeros = torch.zeros(400, 1).bfloat16()
    pairs = Pairs(torch.zeros(400, dtype=torch.long), torch.arange(400))
    seen = attend_pairs(sources, zeros, zeros, pairs)
    assert seen.dtype is torch.bfloat16
    assert float(seen[0]) == 1.0


@pytest.mark.parametrize("reverse", [False, True])
def test_directed_pairs_are_those_of_a_loop_over_chosen_tokens(reverse: bool) -> None:
    mask = torch.tensor([[0, 1, 1, 1], [1, 0, 1, 1], [0, 0, 0, 0], [0, 0, 1, 0]]).bool()
    packing = Packing.from_mask(mask)
    random = torch.Generator().manual_seed(0)
    heads, dependents = torch.rand(2, len(packing.index), generator=random) < 0.6
    sentence, step = packing.sentence.tolist(), packing.step.tolist()
    rows = range(len(step))
    for chosen in ((), (heads, dependents)):
        pairs = directed_pairs(packing, reverse, *chosen)
        expected = {
            (i, j)
            for i in rows
            for j in rows
            if sentence[i] == sentence[j]
            and (step[j] > step[i] if reverse else step[j] < step[i])
            and (not chosen or (heads[i] and dependents[j]))
        }
        assert len(pairs.query) == len(expected) > 1
        assert set(zip(pairs.query.tolist(), pairs.source.tolist(), strict=True)) == expected
