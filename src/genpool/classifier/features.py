"""The input of a classifier of sentence pairs."""

from __future__ import annotations

import torch
from torch import Tensor

from genpool.errors import InputError


def pair_features(first: Tensor, second: Tensor) -> Tensor:
    """Returns [a ; b ; |a - b| ; a * b] of two sentence vectors (the paper's Eq. 10).

    Args:
        first: (batch, dim), the vectors of the first sentences.
        second: (batch, dim), the vectors of the second sentences.

    Returns:
        (batch, 4 dim)

    Raises:
        InputError: the two shapes differ.
    """
    if first.shape != second.shape:
        raise InputError(
            f"the two sides have shapes {tuple(first.shape)} and {tuple(second.shape)}; "
            "expected the same."
        )
    return torch.cat([first, second, (first - second).abs(), first * second], dim=-1)
