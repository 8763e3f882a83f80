"""Pooling with one token left out, for every token in turn: how much does each of them matter?

Every function returns, at a token's position, the vector of the sentence without that token; zeros
at padding and where no token remains. `repool_without` really leaves the tokens out and works for
any pooling; the others are the closed forms of single poolings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from genpool.pooling.masking import hide_padding

#: the other tokens' total weight below which their ratios may have been lost to underflow
MIN_REMAINING_WEIGHT = 1e-25


class WithoutToken(NamedTuple):
    """Heads (batch, heads, time, dim), and the total weight of the other tokens, (…, dim or 1)."""

    heads: Tensor
    remaining: Tensor


def sum_of_others(values: Tensor) -> Tensor:
    """Returns, for every token, the sum over all other tokens; values (..., time, dim).

    It adds what is before to what is after. Subtracting the token from the total would leave only
    rounding errors where nearly everything is in that token.
    """
    before = functional.pad(values, (0, 0, 1, 0))[..., :-1, :].cumsum(dim=-2)
    after = functional.pad(values, (0, 0, 0, 1))[..., 1:, :].flip(-2).cumsum(dim=-2).flip(-2)
    return before + after  # (..., time, dim)


def weighted_without(weights: Tensor, states: Tensor, mask: Tensor) -> WithoutToken:
    """Returns the weighted mean of all tokens but one: (v - a_t h_t) / (1 - a_t), per dimension.

    weights (batch, heads, time, dim or 1); states (batch, time, dim); mask (batch, time).
    """
    clean = hide_padding(states, mask).unsqueeze(1)  # (batch, 1, time, dim)
    remaining = sum_of_others(weights)  # (batch, heads, time, dim or 1): 1 - a_t
    divisor = remaining.masked_fill(remaining == 0, 1)
    heads = sum_of_others(weights * clean) / divisor  # (batch, heads, time, dim)
    return WithoutToken(heads.masked_fill(~mask[:, None, :, None], 0), remaining)


def mean_without(states: Tensor, mask: Tensor) -> Tensor:
    """Returns the mean of all tokens but one, (batch, time, dim)."""
    others = (mask.sum(dim=1) - 1).clamp(min=1).to(states.dtype)  # (batch,)
    means = sum_of_others(hide_padding(states, mask)) / others[:, None, None]
    return hide_padding(means, mask)  # (batch, time, dim)


def max_without(states: Tensor, mask: Tensor) -> Tensor:
    """Returns the maximum of all tokens but one, (batch, time, dim): at its own token, the second.

    states (batch, time, dim); mask (batch, time).
    """
    lowest = float("-inf")
    filled = states.masked_fill(~mask.unsqueeze(-1), lowest)  # (batch, time, dim)
    filled = functional.pad(filled, (0, 0, 0, 2), value=lowest)  # two rows even without a token
    (largest, second), (place, _) = (top.unbind(dim=1) for top in filled.topk(2, dim=1))
    position = torch.arange(states.shape[1], device=states.device)[None, :, None]  # (1, time, 1)
    is_largest = position == place.unsqueeze(1)  # (batch, time, dim)
    others = torch.where(is_largest, second.unsqueeze(1), largest.unsqueeze(1))
    alone = (mask.sum(dim=1) < 2)[:, None]  # (batch, 1): no token remains
    return hide_padding(others, mask & ~alone)  # (batch, time, dim)


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
