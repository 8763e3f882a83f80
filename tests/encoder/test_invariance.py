"""The same sentence has the same states alone, in any batch, with any padding."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from genpool.encoder import Encoder

from .cases import CASES, GARBAGE, INPUT_DIM, MASK, learning, made, sentences

TOLERANCE = 1e-6


def alone(encoder: Encoder, inputs: Tensor, mask: Tensor, row: int) -> Tensor:
    """The states of one sentence of a batch, encoded without padding: (tokens, output_dim)."""
    tokens = inputs[row, mask[row]].unsqueeze(0)  # (1, tokens, input_dim)
    return encoder(tokens, torch.ones(tokens.shape[:2], dtype=torch.bool)).states[0]


@pytest.mark.parametrize("name", CASES)
def test_same_states_alone_and_in_a_batch(name: str) -> None:
    encoder, inputs = made(name), sentences()
    states = encoder(inputs, MASK).states
    for row in range(len(MASK)):
        if MASK[row].any():
            expected = alone(encoder, inputs, MASK, row)
            torch.testing.assert_close(states[row, MASK[row]], expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("left", "right"), [(0, 9), (9, 0), (1, 2), (300, 0)])
def test_same_states_with_padding_on_either_side(name: str, left: int, right: int) -> None:
    encoder = made(name)
    tokens = sentences(torch.ones(1, 5, dtype=torch.bool))
    expected = encoder(tokens, torch.ones(1, 5, dtype=torch.bool)).states[0]
    mask = torch.zeros(1, left + 5 + right, dtype=torch.bool)
    mask[0, left : left + 5] = True
    padded = sentences(mask)
    padded[mask] = tokens[0]
    states = encoder(padded, mask).states[0]
    torch.testing.assert_close(states[left : left + 5], expected, rtol=0, atol=TOLERANCE)
    assert (states[~mask[0]] == 0).all()


@pytest.mark.parametrize("name", CASES)
def test_same_states_whatever_stands_at_padding(name: str) -> None:
    encoder, inputs = made(name), sentences()
    expected = encoder(torch.where(MASK.unsqueeze(-1), inputs, 0.0), MASK).states
    for number in GARBAGE:
        filled = torch.where(MASK.unsqueeze(-1), inputs, number)
        assert torch.equal(encoder(filled, MASK).states, expected)


@pytest.mark.parametrize("name", CASES)
def test_a_bad_number_in_a_real_token_spoils_its_own_sentence_only(name: str) -> None:
    encoder, inputs = made(name), sentences()
    clean = encoder(inputs, MASK).states
    inputs[0, 0, 0] = float("nan")
    states = encoder(inputs, MASK).states
    assert states[0, 0].isnan().any()
    torch.testing.assert_close(states[1:], clean[1:], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", CASES)
def test_same_states_beside_a_much_longer_sentence(name: str) -> None:
    encoder = made(name)
    mask = torch.zeros(3, 60, dtype=torch.bool)
    mask[0, :4], mask[1, :], mask[2, 50:] = True, True, True
    inputs = sentences(mask)
    states = encoder(inputs, mask).states
    for row in range(3):
        expected = alone(encoder, inputs, mask, row)
        torch.testing.assert_close(states[row, mask[row]], expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", CASES)
def test_order_of_the_batch_does_not_matter(name: str) -> None:
    encoder, inputs = made(name), sentences()
    states = encoder(inputs, MASK).states
    for order in ([6, 5, 4, 3, 2, 1, 0], [3, 0, 6, 1, 5, 2, 4]):
        moved = encoder(inputs[order], MASK[order]).states
        torch.testing.assert_close(moved, states[order], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", CASES)
def test_equal_sentences_of_a_batch_have_equal_states(name: str) -> None:
    encoder, mask = made(name), torch.ones(4, 3, dtype=torch.bool)
    inputs = sentences(mask[:1]).expand(4, 3, INPUT_DIM)
    states = encoder(inputs, mask).states
    torch.testing.assert_close(states, states[:1].expand_as(states), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", CASES)
def test_a_sentence_without_tokens_gives_zeros_and_spoils_no_gradient(name: str) -> None:
    encoder, inputs = made(name), sentences().requires_grad_()
    states = encoder(inputs, MASK).states
    assert torch.equal(states[4], torch.zeros_like(states[4]))
    states.square().sum().backward()
    assert inputs.grad is not None
    assert (inputs.grad[~MASK] == 0).all()
    assert inputs.grad[MASK].isfinite().all() and (inputs.grad[MASK] != 0).any()
    for parameter in learning(name, encoder):
        assert parameter.grad is not None and parameter.grad.isfinite().all()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("shape", [(3, 4), (2, 0), (0, 3)])
def test_a_batch_of_only_empty_sentences_gives_zeros(name: str, shape: tuple[int, int]) -> None:
    encoder, mask = made(name), torch.zeros(shape, dtype=torch.bool)
    states, gates = encoder(sentences(mask), mask, gates=encoder.has_gates)
    assert torch.equal(states, torch.zeros(*shape, encoder.output_dim))
    if encoder.has_gates:
        assert torch.equal(gates, torch.zeros(*shape, encoder.output_dim))
