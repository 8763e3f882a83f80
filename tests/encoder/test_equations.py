"""Every encoder against its equations, written a second time in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from genpool.encoder import StackedBiLSTMEncoder

from .cases import CASES, INPUT_DIM, MASK, lively, made, references, sentences, to_numpy

WITH_GATES = [name for name, case in CASES.items() if case.make().has_gates]


@pytest.mark.parametrize("name", CASES)
def test_states_are_those_of_the_equations(name: str) -> None:
    encoder, inputs = made(name, torch.float64), sentences(dtype=torch.float64)
    states, gates = encoder(inputs, MASK)
    expected, _ = references(name, encoder, inputs, MASK)
    np.testing.assert_allclose(to_numpy(states), expected, rtol=0, atol=1e-12)
    assert gates is None
    assert np.abs(expected).max() > 0.1  # the comparison is of numbers, not of zeros


@pytest.mark.parametrize("name", CASES)
def test_float32_states_agree_with_the_equations(name: str) -> None:
    encoder, inputs = made(name), sentences()
    expected, _ = references(name, encoder, inputs, MASK)
    np.testing.assert_allclose(to_numpy(encoder(inputs, MASK).states), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", WITH_GATES)
def test_gates_are_the_input_gates_of_the_top_layer(name: str) -> None:
    encoder, inputs = made(name, torch.float64), sentences(dtype=torch.float64)
    states, gates = encoder(inputs, MASK, gates=True)
    expected_states, expected_gates = references(name, encoder, inputs, MASK)
    np.testing.assert_allclose(to_numpy(gates), expected_gates, rtol=0, atol=1e-12)
    np.testing.assert_allclose(to_numpy(states), expected_states, rtol=0, atol=1e-12)
    assert (gates[MASK] > 0).all() and (gates[MASK] < 1).all()


def test_all_lstm_encoders_and_no_others_have_gates() -> None:
    assert {name.split(",")[0] for name in WITH_GATES} == {
        "stacked-bilstm",
        "bilstm",
        "shortcut-stacked",
        "residual-stacked",
        "lstm",
    }


@pytest.mark.parametrize("name", CASES)
def test_states_are_exactly_zero_at_padding(name: str) -> None:
    encoder = made(name)
    states, gates = encoder(sentences(), MASK, gates=encoder.has_gates)
    assert (states[~MASK] == 0).all()
    assert (states[MASK] != 0).any(dim=-1).all()
    if gates is not None:
        assert (gates[~MASK] == 0).all()


@pytest.mark.parametrize("name", CASES)
def test_output_dim_is_the_width_of_the_states(name: str) -> None:
    encoder = made(name)
    assert encoder(sentences(), MASK).states.shape == (*MASK.shape, encoder.output_dim)


@pytest.mark.parametrize("name", CASES)
def test_bidirectional_says_which_half_of_which_token_has_seen_the_whole_sentence(
    name: str,
) -> None:
    # Last pooling takes the forward half of the last token and the backward half of the first.
    encoder, mask = made(name), torch.ones(1, 9, dtype=torch.bool)
    half = encoder.output_dim // 2
    inputs = sentences(mask).requires_grad_()
    first, last = encoder(inputs, mask).states[0, [0, 8]]

    def seen(number: torch.Tensor) -> list[bool]:
        (gradient,) = torch.autograd.grad(number, inputs, retain_graph=True)
        return (gradient[0] != 0).any(dim=-1).tolist()

    if encoder.bidirectional:
        assert all(seen(last[:half].sum())) and all(seen(first[half:].sum()))
    elif name.split(",")[0] in ("nse", "cafe"):  # by attention every token sees all
        assert all(seen(first.sum())) and all(seen(last.sum()))
    elif not encoder.has_extra_loss:  # whose hard choices decide what a token sees
        assert not all(seen(first.sum()))


def test_one_layer_is_the_same_in_both_shortcut_forms() -> None:
    paper = lively(StackedBiLSTMEncoder(INPUT_DIM, 3, layers=1, shortcut="direction"))
    released = lively(StackedBiLSTMEncoder(INPUT_DIM, 3, layers=1, shortcut="both"))
    inputs = sentences()
    assert torch.equal(paper(inputs, MASK).states, released(inputs, MASK).states)
