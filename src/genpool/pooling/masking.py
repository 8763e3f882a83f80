"""Reductions over the real tokens of a sentence: written once, used by every pooling.

Padding is removed with `where`, never by multiplication: padding may hold inf or NaN, and
0 * NaN is NaN.
"""

from __future__ import annotations

import torch
from torch import Tensor


def hide_padding(states: Tensor, mask: Tensor) -> Tensor:
    """The states, with zeros at padding."""
    return states.masked_fill(~mask.unsqueeze(-1), 0)  # (batch, time, dim)


def masked_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Softmax over time (dimension -2) of the real tokens only.

    logits (batch, ..., time, dim); mask (batch, time). Padding gets exactly 0; a sentence with no
    token gets zeros everywhere.
    """
    between = [1] * (logits.dim() - 3)
    real = mask.view(mask.shape[0], *between, mask.shape[1], 1)  # (batch, ..., time, 1)
    # The lowest finite number instead of -inf: a sentence with no token then has a finite softmax,
    # whose gradient is finite too, before the second fill makes it zero.
    lowest = logits.masked_fill(~real, _lowest(logits))
    return lowest.softmax(dim=-2).masked_fill(~real, 0)  # (batch, ..., time, dim)


def masked_mean(states: Tensor, mask: Tensor) -> Tensor:
    """Mean over the real tokens; zeros where there is none."""
    count = mask.sum(dim=1, keepdim=True).clamp(min=1).to(states.dtype)  # (batch, 1)
    return hide_padding(states, mask).sum(dim=1) / count  # (batch, dim)


def masked_max(states: Tensor, mask: Tensor) -> Tensor:
    """Maximum over the real tokens; zeros where there is none."""
    if states.shape[1] == 0:
        return states.new_zeros(states.shape[0], states.shape[2])  # (batch, dim)
    lowest = states.masked_fill(~mask.unsqueeze(-1), float("-inf"))
    empty = ~mask.any(dim=1, keepdim=True)  # (batch, 1)
    return lowest.amax(dim=1).masked_fill(empty, 0)  # (batch, dim)


def weighted_sum(weights: Tensor, states: Tensor, mask: Tensor) -> Tensor:
    """Sum over time of weights * states, for every head: weights (batch, heads, time, dim or 1)."""
    clean = hide_padding(states, mask)  # (batch, time, dim)
    if weights.shape[-1] == 1:
        return weights.squeeze(-1) @ clean  # (batch, heads, dim)
    return (weights * clean.unsqueeze(1)).sum(dim=2)  # (batch, heads, dim)


def _lowest(numbers: Tensor) -> float:
    return torch.finfo(numbers.dtype).min
