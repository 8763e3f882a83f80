"""Directional self-attention: blocks, and who sees whom."""

from __future__ import annotations

import pytest
import torch

from genpool.encoder import DiSANEncoder, Encoder, disan, pair_attention
from genpool.tensors.fast import fast_paths

from .cases import INPUT_DIM, MASK, lively, made, sentences


@pytest.mark.parametrize("block", [1, 7 * 7 * 3 * 2, 7 * 7 * 3 * 3 + 1])
def test_several_blocks_give_the_same_as_one(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    # 7 sentences of up to 7 tokens and 3 dimensions: blocks of one, two and three queries.
    encoder, inputs = made("disan", torch.float64), sentences(dtype=torch.float64)
    one_block = encoder(inputs, MASK).states
    block_sizes = []
    attend = disan.attend

    def counting(sources, keys, queries, allowed):
        block_sizes.append(queries.shape[1])
        return attend(sources, keys, queries, allowed)

    monkeypatch.setattr(disan, "MAX_BLOCK_VALUES", block)
    monkeypatch.setattr(disan, "attend", counting)
    with fast_paths(False):
        states = encoder(inputs, MASK).states
    assert len(block_sizes) > 2 and sum(block_sizes) == 2 * 7  # both directions, every token once
    torch.testing.assert_close(states, one_block, rtol=0, atol=1e-12)


def test_a_single_pass_for_exported_graphs_is_not_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = made("disan", torch.float64)
    random = torch.Generator().manual_seed(0)
    inputs = torch.randn(2, 5, INPUT_DIM, dtype=torch.float64, generator=random)
    mask = torch.ones(2, 5, dtype=torch.bool)
    one_block = encoder(inputs, mask).states
    monkeypatch.setattr(disan, "MAX_BLOCK_VALUES", 1)
    monkeypatch.setattr(torch, "split", None)  # what would divide it
    assert isinstance(encoder, DiSANEncoder)
    states = encoder.attend_both_ways(inputs, mask, blockwise=False)
    torch.testing.assert_close(states, one_block, rtol=0, atol=1e-12)


@pytest.mark.parametrize("fast", [False, True])
def test_blocks_do_not_change_gradients(monkeypatch: pytest.MonkeyPatch, fast: bool) -> None:
    encoder, module = made("disan", torch.float64), pair_attention if fast else disan
    gradients = []
    for block in (module.MAX_BLOCK_VALUES, 1):
        monkeypatch.setattr(module, "MAX_BLOCK_VALUES", block)
        gradients.append(gradients_of(encoder, fast)[0])
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-12)


def gradients_of(encoder: Encoder, fast: bool) -> list[torch.Tensor | None]:
    """Of the states' squares, for the token vectors and all parameters."""
    encoder.zero_grad()
    inputs = sentences(dtype=torch.float64).requires_grad_()
    with fast_paths(fast):
        encoder(inputs, MASK).states.square().sum().backward()
    return [inputs.grad, *(parameter.grad for parameter in encoder.parameters())]


@pytest.mark.parametrize("name", ["disan", "resan"])
def test_attention_of_pairs_has_the_gradients_of_the_plain_form(name: str) -> None:
    encoder = made(name, torch.float64)
    plain, fast = gradients_of(encoder, False), gradients_of(encoder, True)
    torch.testing.assert_close(fast, plain, rtol=0, atol=1e-12)


def test_no_block_is_larger_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, mask = lively(DiSANEncoder(INPUT_DIM, 3)), torch.ones(2, 40, dtype=torch.bool)
    limit = 2 * 40 * 3 * 8
    largest = []
    attend = disan.attend

    def measuring(sources, keys, queries, allowed):
        largest.append(allowed.numel() * sources.shape[-1])
        return attend(sources, keys, queries, allowed)

    monkeypatch.setattr(disan, "MAX_BLOCK_VALUES", limit)
    monkeypatch.setattr(disan, "attend", measuring)
    with fast_paths(False):
        encoder(sentences(mask), mask)
    assert max(largest) == limit


def test_large_logits_neither_overflow_nor_let_masked_tokens_in() -> None:
    # 5 tanh(x / 5) keeps every logit within 5, so weights differ by a factor of exp(10) at most.
    sources = torch.tensor([[[1.0], [3.0], [100.0]]])
    keys = torch.tensor([[[1e6], [-1e6], [1e6]]])
    allowed = torch.tensor([[[True, True, False]]])
    got = disan.attend(sources, keys, torch.zeros(1, 1, 1), allowed).item()
    high, low = torch.tensor([5.0, -5.0], dtype=torch.float64).exp().tolist()
    assert got == pytest.approx((high * 1 + low * 3) / (high + low), abs=1e-6)


def test_a_token_that_may_see_none_gets_zeros() -> None:
    sources = torch.ones(1, 2, 3)
    allowed = torch.tensor([[[False, False], [True, False]]])
    seen = disan.attend(sources, sources, sources, allowed)
    assert torch.equal(seen[0, 0], torch.zeros(3))
    assert torch.equal(seen[0, 1], torch.ones(3))
