"""Poolings in the form that a graph can hold."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.pooling import GeneralizedPooling, Pooled, Pooling
from genpool.pooling.masking import hide_padding, masked_softmax, weighted_sum


class GeneralizedGraph(nn.Module):
    """Generalized pooling, one head after the other: each is two multiplications by a matrix.

    The pooling itself multiplies by all heads at once, in a tensor of three dimensions, whose
    numbers onnxruntime cannot round to 8 bits with a scale for each column.
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
        heads = weighted_sum(weights, clean, mask)  # (batch, heads, input_dim)
        return Pooled(heads.flatten(1), heads, weights)


def graph_pooling(pooling: Pooling) -> nn.Module:
    """The pooling as a graph can hold it: (states, mask) and, where it needs them, gates."""
    return GeneralizedGraph(pooling) if isinstance(pooling, GeneralizedPooling) else pooling
