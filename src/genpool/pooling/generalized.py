"""Generalized pooling: vector-based multi-head attention (the paper's Eq. 4-6)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from genpool.errors import InputError, unknown_name
from genpool.pooling.base import Pooled, Pooling, require_positive
from genpool.pooling.masking import hide_padding, masked_softmax, weighted_sum
from genpool.pooling.rows import attention_pool
from genpool.pooling.starts import STARTS
from genpool.tensors.packing import Packing


def generalized_weights(
    states: Tensor, mask: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor
) -> Tensor:
    """Eq. 5: A^i = softmax(W2^i ReLU(W1^i H^T + b1^i) + b2^i)^T, over the real tokens.

    states (batch, time, input_dim); w1 (heads, hidden, input_dim); b1 (heads, hidden);
    w2 (heads, input_dim, hidden); b2 (heads, input_dim).
    """
    batch, time, _ = states.shape
    rows = hide_padding(states, mask).flatten(0, 1)  # (batch*time, input_dim)
    logits = generalized_logits(rows, w1, b1, w2, b2)  # (heads, batch*time, input_dim)
    shape = (len(w1), batch, time, states.shape[2])
    logits = logits.view(shape).transpose(0, 1)  # (batch, heads, time, input_dim)
    return masked_softmax(logits, mask)


def generalized_logits(rows: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """What Eq. 5 takes the softmax of: rows (rows, input_dim) -> (heads, rows, input_dim)."""
    inner = generalized_inner(rows, w1, b1)
    inner = inner.view(len(rows), *b1.shape).transpose(0, 1)  # (heads, rows, hidden)
    return torch.baddbmm(b2.unsqueeze(1), inner, w2.mT)


def generalized_inner(rows: Tensor, w1: Tensor, b1: Tensor) -> Tensor:
    """ReLU(W1^i h + b1^i) of all heads: rows (rows, input_dim) -> (rows, heads*hidden)."""
    # All heads read the same rows, so their first layers are one large multiplication.
    return torch.addmm(b1.flatten(), rows, w1.flatten(0, 1).T).relu()


class GeneralizedPooling(Pooling):
    """The paper's pooling: each head weighs every dimension of every token.

    It contains the others. With W2 = 0 every head is the mean; with equal rows in W2 (and equal
    numbers in b2) it is scalar self-attention; with hidden_dim = 2 * input_dim, W1 = [I; -I] and
    W2 = k [I, -I] it tends to max pooling as k grows (`start` can begin near these).

    Args:
        input_dim: width of the states (the paper's 2d).
        heads: number of heads (the paper's I).
        hidden_dim: width of the attention network (the paper's d_a); half of input_dim, as in all
            of the paper's models, where not given.
        initial_std: deviation of the Gaussian start of W1 and W2. The released program's 0.01
            begins close to the mean, with heads alike.
        start: "random"; "mean": every head is the mean of the tokens until it is trained; "max":
            every head begins as soft max pooling (of states between -1 and 1, as an LSTM's are),
            plus a Gaussian of initial_std.

    Example:
        >>> pooling = GeneralizedPooling(input_dim=768, heads=5)
        >>> vector, heads, weights = pooling(states, mask)   # states (batch, time, 768)
    """

    def __init__(
        self,
        input_dim: int,
        heads: int = 5,
        hidden_dim: int | None = None,
        *,
        initial_std: float = 0.01,
        start: Literal["random", "mean", "max"] = "random",
    ) -> None:
        super().__init__(input_dim, heads)
        self.heads = heads
        self.hidden_dim = max(1, input_dim // 2) if hidden_dim is None else hidden_dim
        require_positive("hidden_dim", self.hidden_dim)
        self.w1 = nn.Parameter(torch.empty(heads, self.hidden_dim, input_dim))
        self.b1 = nn.Parameter(torch.empty(heads, self.hidden_dim))
        self.w2 = nn.Parameter(torch.empty(heads, input_dim, self.hidden_dim))
        self.b2 = nn.Parameter(torch.empty(heads, input_dim))
        self.initial_std = initial_std
        if start not in STARTS:
            raise InputError(unknown_name("start", start, STARTS))
        self.start = start
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Begins anew."""
        STARTS[self.start](self.w1, self.b1, self.w2, self.b2, self.initial_std)

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        self.check(states, mask)
        weights = generalized_weights(states, mask, self.w1, self.b1, self.w2, self.b2)
        heads = weighted_sum(weights, states, mask)  # Eq. 6: (batch, heads, input_dim)
        return Pooled(heads.flatten(1), heads, weights)

    def pool_rows(self, rows: Tensor, packing: Packing, gates: Tensor | None = None) -> Pooled:
        inner = generalized_inner(rows, self.w1, self.b1)
        # A softmax over time does not see b2, which all tokens have in common: it is not added, and
        # its gradient is zero. It stays in the graph, because every parameter must have a gradient.
        heads = attention_pool(inner, self.w2, rows, packing) + 0 * self.b2
        return Pooled(heads.flatten(1), heads, None)
