"""The memory of the neural semantic encoder: what it starts as, and how long sentences fare."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from genpool.encoder import NSEEncoder, nse
from genpool.encoder.lstm import LSTMDirection

from .cases import CASES, INPUT_DIM, lively, sentences, to_numpy


def test_words_of_the_width_of_the_memory_are_not_mapped() -> None:
    assert isinstance(NSEEncoder(6, 6).inputs, nn.Identity)
    mapped = NSEEncoder(6, 4).inputs
    assert isinstance(mapped, nn.Linear) and mapped.bias is None


def test_attention_over_the_memory_worked_by_hand() -> None:
    memory = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]]]).log1p()
    empty = torch.tensor([[False, False, True]])
    weights = nse.attend(memory, empty, torch.tensor([[1.0, 0.0]]))
    # exp(log 2) to exp(0): 2 to 1; the third slot belongs to no word.
    torch.testing.assert_close(weights, torch.tensor([[2 / 3, 1 / 3, 0.0]]))


def test_a_state_that_fills_a_slot_is_what_the_next_word_reads() -> None:
    """A memory of one slot: every step reads what the step before it has written."""
    encoder = lively(NSEEncoder(2, 2)).double()
    rows = torch.tensor([[0.5, -1.0]], dtype=torch.float64)
    memory = rows.unsqueeze(0)  # one sentence, one slot
    queries = torch.randn(3, 2, dtype=torch.float64)
    states = encoder._write_states(queries, memory, torch.tensor([[False]]), (1, 1, 1))
    seen = rows[0]
    h = c = np.zeros(2)
    for query, state in zip(queries, states, strict=True):
        composed = encoder.compose(torch.cat([query, seen]))
        h, c = _lstm_step(encoder.write, to_numpy(composed), h, c)
        np.testing.assert_allclose(to_numpy(state), h, rtol=0, atol=1e-12)
        seen = state


def _lstm_step(
    layer: LSTMDirection, x: np.ndarray, h: np.ndarray, c: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    w, u, b = to_numpy(layer.w), to_numpy(layer.u), to_numpy(layer.b)
    logits = w @ x + u @ h + b
    i, f, o = (1 / (1 + np.exp(-logits[2 * part : 2 * part + 2])) for part in range(3))
    c = f * c + i * np.tanh(logits[6:])
    return o * np.tanh(c), c


def test_200_words_agree_with_the_equations() -> None:
    encoder = lively(NSEEncoder(INPUT_DIM, 3)).double()
    mask = torch.ones(2, 200, dtype=torch.bool)
    mask[1, 90:] = False
    inputs = sentences(mask, torch.float64)
    states = encoder(inputs, mask).states
    for row, length in ((0, 200), (1, 90)):
        expected, _ = CASES["nse"].expected(encoder, to_numpy(inputs[row, :length]))
        np.testing.assert_allclose(to_numpy(states[row, :length]), expected, rtol=0, atol=1e-10)
