"""Poolings in the form that a graph can contain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.pooling import GeneralizedPooling, Pooled, Pooling
from genpool.pooling.masking import hide_padding, masked_softmax, weighted_sum


class TracedGeneralizedPooling(nn.Module):
    """Generalized pooling, one head after the other: each is two multiplications by a matrix.

    The pooling itself multiplies by all heads at once, in a tensor of three dimensions, which
    onnxruntime cannot quantize to 8 bits with a scale for each column.
    """

    def __init__(self, pooling: GeneralizedPooling) -> None:
        super().__init__()
        self.pooling = pooling

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        """states (batch, time, input_dim), mask (batch, time)"""
        pooling, clean = self.pooling, hide_padding(states, mask)
        logits = []
        for w1, b1, w2, b2 in zip(pooling.w1, pooling.b1, pooling.w2, pooling.b2, strict=True):
            inner = functional.linear(clean, w1, b1).relu()  # (batch, time, hidden)
            logits.append(functional.linear(inner, w2, b2))  # (batch, time, input_dim)
        weights = masked_softmax(torch.stack(logits, dim=1), mask)
        heads = weighted_sum(weights, clean)  # (batch, heads, input_dim)
        return Pooled(heads.flatten(1), heads, weights)


#: the traced form of a pooling, by its class or a base class; the others are traced as they are
TRACED_POOLINGS: dict[type[Pooling], Callable[[Any], nn.Module]] = {
    GeneralizedPooling: TracedGeneralizedPooling
}


def traced_pooling(pooling: Pooling) -> nn.Module:
    """Returns the traced form: a module (states, mask) and, where the pooling needs them, gates."""
    for cls in type(pooling).__mro__:
        if cls in TRACED_POOLINGS:
            return TRACED_POOLINGS[cls](pooling)
    return pooling
