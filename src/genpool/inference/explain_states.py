"""The explanation of a sentence from its token states, for encoders that are not genpool's own."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from genpool.inference.explanation import Explanation
from genpool.inference.influence import LeaveOneOut, pooling_weights
from genpool.pooling import Pooled, Pooling
from genpool.tensors.packing import Packing
from genpool.text import Token


def explain_states(
    sentence: str,
    tokens: list[Token],
    states: Tensor,
    pooling: Pooling,
    project: Callable[[Pooled], Pooled] = lambda pooled: pooled,
) -> Explanation:
    """Returns what each head of a pooling looks at in one sentence.

    Args:
        sentence: the sentence.
        tokens: its tokens.
        states: their states, (tokens, dim).
        pooling: the pooling.
        project: what follows the pooling. Default: nothing.
    """
    mask = torch.ones(1, len(states), dtype=torch.bool, device=states.device)  # (1, tokens)
    packing = Packing.from_mask(mask)
    with torch.no_grad():
        weights = pooling_weights(
            states, packing, lambda rows: pooling(rows.unsqueeze(0), mask)
        )  # (1, heads, tokens, dim or 1)
        pooled: Pooled = pooling(states.unsqueeze(0), mask)
        without = pooling.heads_without(states.unsqueeze(0), mask)  # (1, heads, tokens, dim)
        vectors = LeaveOneOut.of(pooled, without, project)
    return Explanation(sentence, tokens, weights[0].float().cpu().numpy(), vectors)
