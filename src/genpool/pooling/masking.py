"""Reductions over the real tokens of a sentence, shared by all poolings.

Padding is removed with `where`, never by multiplication: padding may hold inf or NaN, and
0 * NaN is NaN.
"""

from __future__ import annotations

import torch
from torch import Tensor


def hide_padding(states: Tensor, mask: Tensor) -> Tensor:
    """Returns the states (batch, time, dim) with zeros at padding."""
    return states.masked_fill(~mask.unsqueeze(-1), 0)  # (batch, time, dim)


def masked_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Returns the softmax over time (dimension -2) of the real tokens only.

    logits (batch, ..., time, dim); mask (batch, time). The result is exactly 0 at padding, and
    everywhere for a sentence without tokens.
    """
    real = mask.unsqueeze(-1)  # (batch, time, 1)
    for _ in range(logits.dim() - 3):
        real = real.unsqueeze(1)  # (batch, ..., time, 1)
    # The lowest finite value instead of -inf: a sentence without tokens then has a finite softmax,
    # whose gradient is finite too, before the second fill makes it zero.
    filled = logits.masked_fill(~real, torch.finfo(logits.dtype).min)
    return filled.softmax(dim=-2).masked_fill(~real, 0)  # (batch, ..., time, dim)


def masked_mean(states: Tensor, mask: Tensor) -> Tensor:
    """Returns the mean over the real tokens (batch, dim); zeros for a sentence without tokens."""
    count = mask.sum(dim=1, keepdim=True).clamp(min=1).to(states.dtype)  # (batch, 1)
    return hide_padding(states, mask).sum(dim=1) / count  # (batch, dim)


def masked_max(states: Tensor, mask: Tensor) -> Tensor:
    """Returns the maximum over the real tokens (batch, dim); zeros for one without tokens."""
    if states.shape[1] == 0:
        return states.new_zeros(states.shape[0], states.shape[2])  # (batch, dim)
    filled = states.masked_fill(~mask.unsqueeze(-1), float("-inf"))  # (batch, time, dim)
    empty = ~mask.any(dim=1, keepdim=True)  # (batch, 1)
    return filled.amax(dim=1).masked_fill(empty, 0)  # (batch, dim)


def weighted_sum(weights: Tensor, states: Tensor, mask: Tensor) -> Tensor:
    """Returns the sum over time of weights * states for every head, (batch, heads, dim).

    weights (batch, heads, time, dim or 1); states (batch, time, dim); mask (batch, time).
    """
    clean = hide_padding(states, mask)  # (batch, time, dim)
    if weights.shape[-1] == 1:
        return weights.squeeze(-1) @ clean  # (batch, heads, dim)
    return (weights * clean.unsqueeze(1)).sum(dim=2)  # (batch, heads, dim)
