"""DiSAN, CAFE and NSE: blocks, listed pairs, and parts that were worked by hand."""

from __future__ import annotations

import math

import pytest
import torch

from genpool.reproduction.encoders import disan, nse
from genpool.reproduction.encoders.cafe import FactorizationMachine, Highway, intra_attention
from genpool.reproduction.encoders.disan import Pairs, attend_pairs, directed_pairs
from genpool.tensors.modules import fast_paths
from genpool.tensors.packing import Packing
from tests.encoder.cases import INPUT_DIM, made

# --- DiSAN on padded tensors ----------------------------------------------------------------------


def test_exported_states_are_those_of_listed_pairs() -> None:
    encoder = made("disan", torch.float64)
    random = torch.Generator().manual_seed(0)
    inputs = torch.randn(2, 5, INPUT_DIM, dtype=torch.float64, generator=random)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    expected = encoder(inputs, mask).states
    states = encoder.padded_states(inputs * mask.unsqueeze(2), mask, lambda layer, rows: rows)
    torch.testing.assert_close(states[mask], expected[mask], rtol=0, atol=1e-12)


def test_large_logits_neither_overflow_nor_let_masked_tokens_in() -> None:
    # 5 tanh(x / 5) keeps every logit within 5, so weights differ by a factor of exp(10) at most.
    sources = torch.tensor([[[1.0], [3.0], [100.0]]])
    keys = torch.tensor([[[1e6], [-1e6], [1e6]]])
    allowed = torch.tensor([[[True, True, False]]])
    got = disan.attend(sources, keys, torch.zeros(1, 1, 1), allowed).item()
    expected = (math.exp(5) * 1 + math.exp(-5) * 3) / (math.exp(5) + math.exp(-5))
    assert got == pytest.approx(expected, abs=1e-6)
    pairs = Pairs(torch.tensor([2, 2]), torch.tensor([0, 1]))
    seen = attend_pairs(sources[0], keys[0], torch.zeros(3, 1), pairs)
    assert seen.flatten().tolist() == pytest.approx([0, 0, expected])


# --- Listed pairs --------------------------------------------------------------------------------

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


@pytest.mark.parametrize("block", [1, 7, disan.MAX_BLOCK_VALUES])
def test_listed_pairs_give_what_a_mask_gives(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disan, "MAX_BLOCK_VALUES", block)
    sources, keys, queries = tensors()
    pairs, allowed = some_pairs()
    batch = (tensor.unsqueeze(0) for tensor in (sources, keys, queries, allowed))
    expected = disan.attend(*batch)[0]
    for fast in (True, False):
        with fast_paths(fast):
            seen = attend_pairs(sources, keys, queries, pairs)
        torch.testing.assert_close(seen, expected, rtol=0, atol=1e-12)
        assert not seen[4].any()


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


@pytest.mark.parametrize("block", [1, disan.MAX_BLOCK_VALUES])
def test_gradients_are_those_of_finite_differences(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disan, "MAX_BLOCK_VALUES", block)
    pairs, _ = some_pairs()
    assert torch.autograd.gradcheck(
        lambda sources, keys, queries: attend_pairs(sources, keys, queries, pairs), tensors(seed=1)
    )


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
        pairs = directed_pairs(packing, reverse, torch.stack(chosen, dim=1) if chosen else None)
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


def test_equal_keys_attend_to_the_mean_of_the_real_words() -> None:
    values = torch.tensor([[[1.0, 2.0], [3.0, 6.0], [0.0, 0.0]]])
    mask = torch.tensor([[True, True, False]])
    aligned = intra_attention(values, torch.ones(1, 3, 2), mask)
    assert aligned[0, :2].tolist() == [[2.0, 4.0], [2.0, 4.0]]


def test_attention_over_the_memory_worked_by_hand() -> None:
    memory = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]]]).log1p()
    empty = torch.tensor([[False, False, True]])
    weights = nse.attend(memory, empty, torch.tensor([[1.0, 0.0]]))
    # exp(log 2) to exp(0): 2 to 1; the third slot belongs to no word.
    torch.testing.assert_close(weights, torch.tensor([[2 / 3, 1 / 3, 0.0]]))
