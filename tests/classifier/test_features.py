"""What a classifier sees of a pair of sentences."""

from __future__ import annotations

import pytest
import torch

from genpool.classifier import pair_features
from genpool.errors import InputError

from . import reference


def test_a_hand_worked_pair() -> None:
    features = pair_features(torch.tensor([[1.0, -2.0]]), torch.tensor([[3.0, 5.0]]))
    assert features.tolist() == [[1, -2, 3, 5, 2, 7, 3, -10]]


def test_features_are_those_of_the_equation() -> None:
    random = torch.Generator().manual_seed(0)
    first, second = torch.randn(2, 7, 3, generator=random, dtype=torch.float64)
    expected = [
        reference.pair_features(a, b) for a, b in zip(first.tolist(), second.tolist(), strict=True)
    ]
    assert pair_features(first, second).tolist() == expected


def test_width_is_four_times_that_of_a_sentence() -> None:
    assert pair_features(torch.zeros(5, 6), torch.zeros(5, 6)).shape == (5, 24)
    assert pair_features(torch.zeros(0, 6), torch.zeros(0, 6)).shape == (0, 24)


def test_gradients_are_those_of_finite_differences() -> None:
    random = torch.Generator().manual_seed(0)
    sides = torch.randn(2, 3, 4, generator=random, dtype=torch.float64)
    first, second = (side.clone().requires_grad_() for side in sides)
    assert torch.autograd.gradcheck(pair_features, (first, second))


def test_sides_of_different_shapes_are_refused() -> None:
    with pytest.raises(InputError, match=r"\(2, 3\) and \(2, 4\); expected the same"):
        pair_features(torch.zeros(2, 3), torch.zeros(2, 4))


def test_sides_that_could_be_broadcast_are_refused() -> None:
    with pytest.raises(InputError, match=r"\(2, 3\) and \(1, 3\)"):
        pair_features(torch.zeros(2, 3), torch.zeros(1, 3))
