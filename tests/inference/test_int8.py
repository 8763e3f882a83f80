"""8-bit products: against loops, and in a whole encoder."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from genpool.errors import InputError
from genpool.inference.int8 import Int8Product
from genpool.inference.quick import QuickEncoder
from tests.helpers.random_encoders import SENTENCES, largest_difference, model


def loops(inputs: np.ndarray, weight: np.ndarray, known_scale: bool) -> np.ndarray:
    """Rounds both sides, multiplies whole numbers, and scales: number by number."""
    result = np.zeros((len(inputs), len(weight)))
    for row, values in enumerate(inputs):
        scale = 1 / 127 if known_scale else np.abs(values).max() / 127
        for out, weights in enumerate(weight):
            own = np.abs(weights).max() / 127
            total = 0
            for value, factor in zip(values, weights, strict=True):
                total += int(np.rint(value / scale)) * int(np.rint(factor / own))
            result[row, out] = total * scale * own
    return result


def test_the_product_is_that_of_the_rounded_numbers() -> None:
    random = np.random.default_rng(0)
    inputs = random.normal(size=(4, 9)).astype(np.float32)
    weight = random.normal(size=(5, 9)).astype(np.float32)
    found = Int8Product(torch.from_numpy(weight))(torch.from_numpy(inputs))
    assert largest_difference(found, loops(inputs, weight, False)) < 1e-5
    states = np.tanh(inputs)
    target = torch.ones(4, 5)
    Int8Product(torch.from_numpy(weight)).add_to(target, torch.from_numpy(states))
    assert largest_difference(target, 1 + loops(states, weight, True)) < 1e-5


def test_zeros_and_nothing() -> None:
    product = Int8Product(torch.zeros(3, 2))
    assert product(torch.zeros(4, 2)).tolist() == torch.zeros(4, 3).tolist()
    assert product(torch.zeros(0, 2)).shape == (0, 3)


def cosines(first, second) -> np.ndarray:
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return (first * second).sum(axis=1) / np.where(lengths > 0, lengths, 1)


@pytest.mark.parametrize(
    "encoder", ["bilstm", "stacked-bilstm", "shortcut-stacked", "residual-stacked"]
)
@pytest.mark.parametrize("pooling", ["generalized", "max", "scalar"])
def test_vectors_are_close_and_the_same_in_any_batch(encoder: str, pooling: str) -> None:
    plain = model(encoder, pooling)
    rounded = QuickEncoder(plain, int8=True)
    found = rounded.encode(SENTENCES)
    real = [number for number, sentence in enumerate(SENTENCES) if sentence]
    assert cosines(found, plain.encode(SENTENCES))[real].min() > 0.99
    assert not found[1].any()  # no words: zeros
    for number, sentence in enumerate(SENTENCES):
        assert largest_difference(rounded.encode(sentence), found[number]) < 1e-6
    assert rounded.encode([]).shape == (0, plain.output_dim)
    assert not rounded.encode([""]).any()


def test_int8_is_for_lstms() -> None:
    with pytest.raises(InputError, match="BiLSTM encoders"):
        QuickEncoder(model("cnn"), int8=True)
    with pytest.raises(InputError, match="gated"):
        QuickEncoder(model("bilstm", "gated"), int8=True)
