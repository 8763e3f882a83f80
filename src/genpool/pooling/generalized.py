"""Generalized pooling: vector-based multi-head attention (the paper's Eq. 4-6).

    A^i = softmax(W2^i ReLU(W1^i H^T + b1^i) + b2^i)^T      Eq. 5, over the tokens, per dimension
    v^i = sum_t A^i_t * h_t                                  Eq. 6
    v   = [v^1 ; v^2 ; ... ; v^I]                            Eq. 4 with I heads

`generalized_weights` is Eq. 5 over a padded tensor; `AttentionPooling.forward` is Eq. 6.
`genpool.pooling.packed` returns the same vectors over packed rows. The other poolings are special
cases, near which the parameters can start (`STARTS`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from genpool.errors import InputError, unknown_name
from genpool.pooling.base import AttentionPooling, Pooled, require_std
from genpool.pooling.masking import masked_softmax
from genpool.pooling.packed import attention_pool
from genpool.tensors.checks import require_positive
from genpool.tensors.packing import Packing


def generalized_weights(
    states: Tensor, mask: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor
) -> Tensor:
    """Returns Eq. 5, A^i = softmax(W2^i ReLU(W1^i H^T + b1^i) + b2^i)^T, over the real tokens.

    states (batch, time, input_dim), finite at padding; w1 (heads, hidden, input_dim);
    b1 (heads, hidden); w2 (heads, input_dim, hidden); b2 (heads, input_dim)
    -> (batch, heads, time, input_dim).
    """
    rows = states.flatten(0, 1)  # (batch*time, input_dim)
    logits = generalized_logits(rows, w1, b1, w2, b2)  # (heads, batch*time, input_dim)
    # Sizes from `shape`, never from len(), so that an exported graph keeps them dynamic.
    logits = logits.view(w1.shape[0], *states.shape)  # (heads, batch, time, input_dim)
    return masked_softmax(logits.transpose(0, 1), mask)


def generalized_logits(rows: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """Returns the logits of Eq. 5: rows (rows, input_dim) -> (heads, rows, input_dim)."""
    inner = generalized_inner(rows, w1, b1)
    inner = inner.view(rows.shape[0], *b1.shape).transpose(0, 1)  # (heads, rows, hidden)
    return torch.baddbmm(b2.unsqueeze(1), inner, w2.mT)


def generalized_inner(rows: Tensor, w1: Tensor, b1: Tensor) -> Tensor:
    """Returns ReLU(W1^i h + b1^i) of all heads: (rows, input_dim) -> (rows, heads*hidden)."""
    # All heads read the same rows, so their first layers are one large multiplication.
    return torch.addmm(b1.flatten(), rows, w1.flatten(0, 1).T).relu()


class GeneralizedPooling(AttentionPooling):
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
        require_positive(hidden_dim=self.hidden_dim)
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

    def weights(self, states: Tensor, mask: Tensor) -> Tensor:
        """Returns A of Eq. 5, (batch, heads, time, input_dim)."""
        return generalized_weights(states, mask, self.w1, self.b1, self.w2, self.b2)

    def pool_rows(self, rows: Tensor, packing: Packing, gates: Tensor | None = None) -> Pooled:
        inner = generalized_inner(rows, self.w1, self.b1)
        heads = attention_pool(inner, self.w2, self.b2, rows, packing)
        return Pooled(heads.flatten(1), heads, None)


# How the parameters start: at random, or near one of the special cases.

#: k of the softmax(k h) that `as_max` starts from
SHARPNESS = 10.0


def as_random(w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, std: float) -> None:
    """Gaussian matrices, biases 0."""
    for weight in (w1, w2):
        nn.init.normal_(weight, std=std)
    for bias in (b1, b2):
        nn.init.zeros_(bias)


def as_mean(w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, std: float) -> None:
    """Mean pooling: W2 = 0.

    W1 is random, and large enough that W2 has a useful gradient, which differs between heads.
    """
    as_random(w1, b1, w2, b2, w1.shape[2] ** -0.5)
    nn.init.zeros_(w2)


def as_max(w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, std: float) -> None:
    """Soft max pooling, for states between -1 and 1 such as an LSTM's, plus Gaussian noise.

    Each hidden unit copies one dimension of the state, b1 keeps it positive, so that the ReLU does
    not change it, and W2 passes it on to the dimensions of its group: they are taken from the
    tokens where the copied dimension is large. With hidden_dim = input_dim every dimension is its
    own group, and the weights are softmax(k h) over time. Each head copies another dimension of a
    group.
    """
    as_random(w1, b1, w2, b2, std)
    if w1.is_meta:  # sizes only
        return
    heads, inner, dim = w1.shape
    inner = min(inner, dim)
    units, dims = torch.arange(inner), torch.arange(dim)
    group = dims * inner // dim  # (dim,): the hidden unit that a dimension depends on
    sizes = torch.bincount(group)  # (inner,)
    first = sizes.cumsum(0) - sizes  # (inner,): the first dimension of each group
    root = SHARPNESS**0.5
    with torch.no_grad():
        b1[:, :inner] = root
        for head in range(heads):
            w1[head, units, first + head % sizes] += root
            w2[head, dims, group] += root


#: every initialization by the name that `GeneralizedPooling(start=...)` takes
STARTS: dict[str, Callable[[Tensor, Tensor, Tensor, Tensor, float], None]] = {
    "random": as_random,
    "mean": as_mean,
    "max": as_max,
}
