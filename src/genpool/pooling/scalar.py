"""Scalar multi-head self-attention (Lin et al. 2017): one weight per token and head."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from genpool.pooling.base import Pooled, Pooling, require_positive
from genpool.pooling.masking import hide_padding, masked_softmax, weighted_sum


def scalar_weights(states: Tensor, mask: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    """A = softmax(W2 tanh(W1 H^T)): w1 (hidden, input_dim), w2 (heads, hidden)."""
    inner = torch.tanh(hide_padding(states, mask) @ w1.T)  # (batch, time, hidden)
    logits = (inner @ w2.T).mT.unsqueeze(-1)  # (batch, heads, time, 1)
    return masked_softmax(logits, mask)


class ScalarAttentionPooling(Pooling):
    """Lin et al.'s structured self-attention; M = A H, flattened.

    Args:
        input_dim: width of the states.
        heads: number of weights per token (their r).
        hidden_dim: width of the shared tanh layer (their d_a); half of input_dim if not given.
    """

    def __init__(self, input_dim: int, heads: int = 5, hidden_dim: int | None = None) -> None:
        super().__init__(input_dim, heads)
        self.heads = heads
        self.hidden_dim = max(1, input_dim // 2) if hidden_dim is None else hidden_dim
        require_positive("hidden_dim", self.hidden_dim)
        self.w1 = nn.Parameter(torch.empty(self.hidden_dim, input_dim))
        self.w2 = nn.Parameter(torch.empty(heads, self.hidden_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.w1)
        nn.init.xavier_uniform_(self.w2)

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        self.check(states, mask)
        weights = scalar_weights(states, mask, self.w1, self.w2)
        heads = weighted_sum(weights, states, mask)  # (batch, heads, input_dim)
        return Pooled(heads.flatten(1), heads, weights)
