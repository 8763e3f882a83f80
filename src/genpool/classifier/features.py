"""What a classifier sees of a pair of sentences."""

from __future__ import annotations

import torch
from torch import Tensor

from genpool.errors import InputError


def pair_features(first: Tensor, second: Tensor) -> Tensor:
    """[a ; b ; |a - b| ; a * b] (the paper's Eq. 10): 2 x (batch, dim) -> (batch, 4 dim)."""
    if first.shape != second.shape:
        raise InputError(
            f"the two sides have shapes {tuple(first.shape)} and {tuple(second.shape)}; "
            "expected the same."
        )
    return torch.cat([first, second, (first - second).abs(), first * second], dim=-1)
