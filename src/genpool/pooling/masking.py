"""Reductions over the real tokens of a sentence, also with one token left out.

Padding is removed with `where`, never by multiplication: padding may hold inf or NaN, and
0 * NaN is NaN.

The functions with "without" answer how much each token matters: at a token's position they return
the vector of the sentence without that token; zeros at padding and where no token remains.
`repool_without` really leaves the tokens out and works for any pooling; `weighted_without` is the
closed form where the weights of the other tokens keep their ratios.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch.nn import functional

#: the other tokens' total weight below which their ratios may have been lost to underflow
MIN_REMAINING_WEIGHT = 1e-25


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


def weighted_sum(weights: Tensor, states: Tensor) -> Tensor:
    """Returns the sum over time of weights * states for every head, (batch, heads, dim).

    weights (batch, heads, time, dim or 1); states (batch, time, dim), zeros at padding.
    """
    if weights.shape[-1] == 1:
        return weights.squeeze(-1) @ states  # (batch, heads, dim)
    return (weights * states.unsqueeze(1)).sum(dim=2)  # (batch, heads, dim)


def sum_of_others(values: Tensor) -> Tensor:
    """Returns, for every token, the sum over all other tokens; values (..., time, dim).

    It adds what is before to what is after. Subtracting the token from the total would leave only
    rounding errors where nearly everything is in that token.
    """
    before = functional.pad(values, (0, 0, 1, 0))[..., :-1, :].cumsum(dim=-2)
    after = functional.pad(values, (0, 0, 0, 1))[..., 1:, :].flip(-2).cumsum(dim=-2).flip(-2)
    return before + after  # (..., time, dim)


def weighted_without(weights: Tensor, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the weighted mean of all tokens but one: (v - a_t h_t) / (1 - a_t), per dimension.

    weights (batch, heads, time, dim or 1); states (batch, time, dim); mask (batch, time) -> heads
    (batch, heads, time, dim) and the total weight of the other tokens, (batch, heads, time, ...).
    """
    clean = hide_padding(states, mask).unsqueeze(1)  # (batch, 1, time, dim)
    remaining = sum_of_others(weights)  # (batch, heads, time, dim or 1): 1 - a_t
    divisor = remaining.masked_fill(remaining == 0, 1)
    heads = sum_of_others(weights * clean) / divisor  # (batch, heads, time, dim)
    return heads.masked_fill(~mask[:, None, :, None], 0), remaining


def repool_without(
    pool: Callable[[Tensor], Tensor], mask: Tensor, positions: Iterable[int]
) -> Tensor:
    """Returns the heads (batch, heads, positions, dim) with the token at each position left out.

    pool returns the heads (batch, heads, dim) for a mask (batch, time).
    """
    heads = []
    for position in positions:
        others = mask.clone()
        others[:, position] = False
        without = pool(others)  # (batch, heads, dim)
        heads.append(without.masked_fill(~mask[:, position, None, None], 0))
    if not heads:
        return pool(mask).unsqueeze(2)[:, :, :0]  # (batch, heads, 0, dim)
    return torch.stack(heads, dim=2)  # (batch, heads, positions, dim)


def lost_positions(remaining: Tensor, mask: Tensor) -> list[int]:
    """Returns the positions whose token has all weight, so that the ratios of others are lost."""
    several = (mask.sum(dim=1) > 1)[:, None] & mask  # (batch, time): another token exists
    low = (remaining < MIN_REMAINING_WEIGHT).amax(dim=(1, 3))  # (batch, time)
    lost = (low & several).any(dim=0)  # (time,)
    positions: list[int] = lost.nonzero().flatten().tolist()
    return positions
