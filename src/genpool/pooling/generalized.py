"""Generalized pooling: vector-based multi-head attention (the paper's Eq. 4-6)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from genpool.errors import InputError, unknown_name
from genpool.pooling.base import Pooled, Pooling, require_positive, require_std
from genpool.pooling.masking import hide_padding, masked_softmax, weighted_sum
from genpool.pooling.rows import attention_pool
from genpool.pooling.starts import STARTS
from genpool.tensors.packing import Packing


def generalized_weights(
    states: Tensor, mask: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor
) -> Tensor:
    """Returns Eq. 5, A^i = softmax(W2^i ReLU(W1^i H^T + b1^i) + b2^i)^T, over the real tokens.

    states (batch, time, input_dim); w1 (heads, hidden, input_dim); b1 (heads, hidden);
    w2 (heads, input_dim, hidden); b2 (heads, input_dim) -> (batch, heads, time, input_dim).
    """
    batch, time, _ = states.shape
    rows = hide_padding(states, mask).flatten(0, 1)  # (batch*time, input_dim)
    logits = generalized_logits(rows, w1, b1, w2, b2)  # (heads, batch*time, input_dim)
    shape = (len(w1), batch, time, states.shape[2])
    logits = logits.view(shape).transpose(0, 1)  # (batch, heads, time, input_dim)
    return masked_softmax(logits, mask)


def generalized_logits(rows: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """Returns the logits of Eq. 5: rows (rows, input_dim) -> (heads, rows, input_dim)."""
    inner = generalized_inner(rows, w1, b1)
    inner = inner.view(len(rows), *b1.shape).transpose(0, 1)  # (heads, rows, hidden)
    return torch.baddbmm(b2.unsqueeze(1), inner, w2.mT)


def generalized_inner(rows: Tensor, w1: Tensor, b1: Tensor) -> Tensor:
    """Returns ReLU(W1^i h + b1^i) of all heads: (rows, input_dim) -> (rows, heads*hidden)."""
    # All heads read the same rows, so their first layers are one large multiplication.
    return torch.addmm(b1.flatten(), rows, w1.flatten(0, 1).T).relu()


class GeneralizedPooling(Pooling):
    """The paper's generalized pooling: each head weights every dimension of every token (Eq. 4-6).

    Other poolings are special cases. With W2 = 0 every head is the mean; with equal rows in W2 (and
    equal values in b2) it is scalar self-attention; with hidden_dim = 2 * input_dim, W1 = [I; -I]
    and W2 = k [I, -I] it tends to max pooling as k grows. `start` initializes it near these.

    Args:
        input_dim: dimensions of a token state (the paper's 2d).
        heads: number of heads (the paper's I). Default: 5.
        hidden_dim: width of the attention network (the paper's d_a). Default: None, half of
            input_dim, as in all of the paper's models.
        initial_std: standard deviation of the Gaussian from which W1 and W2 start. Default: 0.01,
            as in the released program: every head starts close to the mean.
        start: how the attention starts. "random": W1 and W2 are Gaussian; "mean": every head is
            the mean of the tokens until it is trained; "max": every head starts as a soft maximum
            (of states between -1 and 1, such as an LSTM's), plus a Gaussian of initial_std.
            Default: "random".

    Attributes:
        w1: parameter (heads, hidden_dim, input_dim).
        b1: parameter (heads, hidden_dim).
        w2: parameter (heads, input_dim, hidden_dim).
        b2: parameter (heads, input_dim).

    Raises:
        InputError: a size is not a whole number of 1 or more, initial_std is negative, or start is
            unknown.

    Example:
        >>> pooling = GeneralizedPooling(input_dim=768, heads=5)
        >>> vector, heads, weights = pooling(states, mask)   # states (batch, time, 768)
        >>> vector.shape, weights.shape     # (batch, 3840), (batch, 5, time, 768)
    """

    is_packed = True
    penalties = ("parameter", "attention", "embedding")

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
        self.hidden_dim = max(1, input_dim // 2) if hidden_dim is None else hidden_dim
        require_positive("hidden_dim", self.hidden_dim)
        require_std("initial_std", initial_std)
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
        """Re-initializes the parameters, as `start` and `initial_std` say."""
        STARTS[self.start](self.w1, self.b1, self.w2, self.b2, self.initial_std)

    def head_parameters(self) -> Tensor:
        """Returns W1 (heads, hidden_dim, input_dim), which the parameter penalty compares."""
        return self.w1

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        """Pools a batch of sentences.

        Args:
            states: token states (batch, time, input_dim).
            mask: boolean (batch, time), True at real tokens.

        Returns:
            Vectors (batch, heads * input_dim), heads (batch, heads, input_dim), weights (batch,
            heads, time, input_dim).

        Raises:
            InputError: a shape or a type does not fit.
        """
        self.check(states, mask)
        weights = generalized_weights(states, mask, self.w1, self.b1, self.w2, self.b2)
        heads = weighted_sum(weights, states, mask)  # Eq. 6: (batch, heads, input_dim)
        return Pooled(heads.flatten(1), heads, weights)

    def pool_rows(self, rows: Tensor, packing: Packing, gates: Tensor | None = None) -> Pooled:
        """Pools packed rows without making the weights.

        Args:
            rows: states of the real tokens, (rows, input_dim).
            packing: where the rows belong.
            gates: not used. Default: None.

        Returns:
            The same vectors and heads as `forward`; the weights are None.
        """
        inner = generalized_inner(rows, self.w1, self.b1)
        # b2 is the same for all tokens, so that a softmax over time does not depend on it and its
        # gradient is zero. It stays in the graph, because every parameter must have a gradient.
        heads = attention_pool(inner, self.w2, rows, packing) + 0 * self.b2
        return Pooled(heads.flatten(1), heads, None)
