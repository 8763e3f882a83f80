"""Masks as tokenizers return them."""

import pytest
import torch

from genpool.encoder.bilstm import StackedBiLSTMEncoder
from genpool.errors import InputError
from genpool.tensors.checks import boolean_mask


def test_integers_become_booleans():
    assert boolean_mask(torch.tensor([[1, 0]]), (1, 2)).tolist() == [[True, False]]


def test_booleans_are_returned_as_they_are():
    mask = torch.tensor([True, False])
    assert boolean_mask(mask, (2,)) is mask


@pytest.mark.parametrize("values", [[2, 1], [-1, 0], [-10000, 0]])
def test_other_integers_are_refused(values):
    with pytest.raises(InputError, match=f"from {min(values)} to {max(values)}"):
        boolean_mask(torch.tensor(values), (2,))


def test_an_additive_mask_is_refused():
    with pytest.raises(InputError, match=r"torch.float32.*added to attention scores"):
        boolean_mask(torch.tensor([0.0, -10000.0]), (2,))


def test_encoders_take_a_mask_of_integers_too():
    torch.manual_seed(0)
    encoder = StackedBiLSTMEncoder(3, hidden_dim=2)
    inputs, mask = torch.randn(2, 3, 3), torch.tensor([[1, 1, 1], [1, 0, 0]])
    assert torch.equal(encoder(inputs, mask).states, encoder(inputs, mask.bool()).states)
