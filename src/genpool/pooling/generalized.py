"""Generalized pooling: vector-based multi-head attention (the paper's Eq. 4-6).

    A^i = softmax(W2^i ReLU(W1^i H^T + b1^i) + b2^i)^T      Eq. 5, over the tokens, per dimension
    v^i = sum_t A^i_t * h_t                                  Eq. 6
    v   = [v^1 ; v^2 ; ... ; v^I]                            Eq. 4 with I heads

`generalized_weights` is Eq. 5 over a padded tensor; `AttentionPooling.forward` is Eq. 6. The other
poolings are special cases, near which the parameters can start. `attention_pool`, at the end,
returns the same vectors over packed rows, in less time and memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from genpool.pooling.base import AttentionPooling, Pooled, masked_softmax, require_std
from genpool.tensors.modules import require_literal, require_positive
from genpool.tensors.packing import Packing, Sizes, steps_of

#: the special cases near which the parameters can start
Start = Literal["random", "mean", "max"]
#: k of the softmax(k h) that the start "max" has
SHARPNESS = 10.0
#: sums of exponentials between these, and their inverses, are far from the limits of float32
MIN_EXPONENTIAL_SUM, MAX_EXPONENTIAL_SUM = 1e-20, 1e20


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
        heads: number of heads (the paper's I).
        hidden_dim: width of the attention network (the paper's d_a). Default: None, half of
            input_dim, as in all of the paper's models.
        initial_std: standard deviation of the Gaussian from which W1 and W2 start. Default: 0.01,
            as in the released program: every head starts close to the mean.
        start: how the attention starts. "random": W1 and W2 are Gaussian; "mean": every head is
            the mean of the tokens until it is trained; "max": every head starts as a soft maximum
            (of states between -1 and 1, such as an LSTM's), plus a Gaussian of initial_std.

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
        start: Start = "random",
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
        require_literal("start", start, Start)
        self.start = start
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Re-initializes the parameters, as `start` and `initial_std` say."""
        # From the mean, W1 must be large enough that W2 = 0 has a gradient that differs by head.
        std = self.input_dim**-0.5 if self.start == "mean" else self.initial_std
        for weight in (self.w1, self.w2):
            nn.init.normal_(weight, std=std)
        for bias in (self.b1, self.b2):
            nn.init.zeros_(bias)
        if self.start == "mean":
            nn.init.zeros_(self.w2)
        elif self.start == "max" and not self.w1.is_meta:
            add_soft_maximum(self.w1, self.b1, self.w2)

    def head_parameters(self) -> Tensor:
        """Returns W1 (heads, hidden_dim, input_dim), which the parameter penalty compares."""
        return self.w1

    def weights(self, states: Tensor, mask: Tensor) -> Tensor:
        return generalized_weights(states, mask, self.w1, self.b1, self.w2, self.b2)

    def pool_rows(self, rows: Tensor, packing: Packing, gates: Tensor | None = None) -> Pooled:
        inner = generalized_inner(rows, self.w1, self.b1)
        heads = attention_pool(inner, self.w2, self.b2, rows, packing)  # (batch, heads, input_dim)
        return Pooled(heads.flatten(1), heads, None)


@torch.no_grad()
def add_soft_maximum(w1: Tensor, b1: Tensor, w2: Tensor) -> None:
    """Adds soft max pooling, for states between -1 and 1 such as an LSTM's, to small parameters.

    Each hidden unit copies one dimension of the state, which b1 keeps positive for the ReLU, and W2
    passes it on to its group of dimensions. With hidden_dim = input_dim every dimension is a group,
    and the weights are softmax(k h) over time. Each head copies another dimension of a group.
    """
    heads, inner, dim = w1.shape
    inner = min(inner, dim)
    units, dims = torch.arange(inner), torch.arange(dim)
    group = dims * inner // dim  # (dim,): the hidden unit that a dimension depends on
    sizes = torch.bincount(group)  # (inner,)
    first = sizes.cumsum(0) - sizes  # (inner,): the first dimension of each group
    root = SHARPNESS**0.5
    b1[:, :inner] = root
    for head in range(heads):
        w1[head, units, first + head % sizes] += root
        w2[head, dims, group] += root


# --- the same vectors over packed rows
#
# Sentences that continue at a step are the first ones (`genpool.tensors.packing`), so that a sum
# over the tokens of every sentence is one operation a step, on contiguous rows of all heads.


def attention_pool(inner: Tensor, w2: Tensor, b2: Tensor, rows: Tensor, packing: Packing) -> Tensor:
    """Returns Eq. 5-6, (batch, heads, dim), of inner (rows, heads*hidden) and rows (rows, dim)."""
    # Autocast would choose a type for each multiplication; in-place sums need one type for all.
    with torch.autocast(rows.device.type, enabled=False):
        by_rank: Tensor = _AttentionPool.apply(inner, w2.to(inner.dtype), rows, packing.sizes)  # type: ignore[no-untyped-call]
    # b2 is the same for all tokens, so that a softmax over time does not depend on it and its
    # gradient is zero. It stays in the graph, because every parameter must have a gradient.
    return by_sentence(by_rank, packing) + 0 * b2


def by_sentence(by_rank: Tensor, packing: Packing) -> Tensor:
    """Reorders heads (heads, sentences, dim) from the packing's order to (batch, heads, dim)."""
    owners = packing.sentence[: by_rank.shape[1]]  # (sentences that have a token,)
    heads = by_rank.transpose(0, 1)
    empty = heads.new_zeros(packing.shape[0], *heads.shape[1:])
    return empty.index_copy(0, owners, heads)


def pool_heads(
    make_logits: Callable[[], Tensor], rows: Tensor, sizes: Sizes
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the pooled rows and the sums of exp(logits), (..., sentences, dim), and exp(logits).

    The largest logit is subtracted, in two more passes, only where the sums show that exponentials
    overflowed or vanished: trained logits (..., rows, dim) are seldom large.
    """
    logits = make_logits()
    # Half precision overflows early, and on other devices reading the sums would synchronize.
    if sizes and logits.device.type == "cpu" and logits.dtype in (torch.float32, torch.float64):
        pooled, total = _exponential_sums(logits, rows, sizes)
        low, high = torch.aminmax(total)
        if low > MIN_EXPONENTIAL_SUM and high < MAX_EXPONENTIAL_SUM:  # False for NaN
            return pooled, total, logits
        logits = make_logits()
    peak = logits[..., : max(sizes, default=0), :].clone()  # (..., sentences, dim)
    for now, size in steps_of(sizes):
        running = peak[..., :size, :]
        torch.maximum(running, logits[..., now, :], out=running)
    for now, size in steps_of(sizes):
        logits[..., now, :] -= peak[..., :size, :]
    return *_exponential_sums(logits, rows, sizes), logits


def _exponential_sums(logits: Tensor, rows: Tensor, sizes: Sizes) -> tuple[Tensor, Tensor]:
    """Overwrites the logits with their exponentials."""
    shares = logits.exp_()
    # Long sums in half precision stop growing at 256: they are kept in single precision.
    sum_type = torch.promote_types(logits.dtype, torch.float32)
    sentences = max(sizes, default=0)
    total = torch.zeros_like(logits[..., :sentences, :], dtype=sum_type)  # (..., sentences, dim)
    summed = torch.zeros_like(total)
    for now, size in steps_of(sizes):
        share = shares[..., now, :].to(sum_type)  # (..., size, dim)
        total[..., :size, :] += share
        summed[..., :size, :].addcmul_(share, rows[now].to(sum_type))
    return summed.div_(total).to(rows.dtype), total


class _AttentionPool(torch.autograd.Function):
    """Returns (heads, sentences, dim) in the order of the packing; backward head by head.

    The gradients of the logits, the largest tensors, so never exist at the same time.
    """

    @staticmethod
    def forward(ctx: Any, inner: Tensor, w2: Tensor, rows: Tensor, sizes: Sizes) -> Tensor:
        heads, _, hidden = w2.shape
        parts = inner.view(-1, heads, hidden).transpose(0, 1)  # (heads, rows, hidden)
        pooled, total, shares = pool_heads(lambda: torch.bmm(parts, w2.mT), rows, sizes)
        ctx.save_for_backward(inner, w2, rows, shares, total, pooled)
        ctx.sizes = sizes
        return pooled

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        inner, w2, rows, shares, total, pooled = ctx.saved_tensors
        # d pooled / d logit_t = weight_t * (row_t - pooled);  d pooled / d row_t = weight_t
        per_share = (grads[0] / total).to(shares.dtype)  # (heads, sentences, dim)
        grad_inner, grad_w2 = torch.empty_like(inner), torch.empty_like(w2)
        grad_rows = torch.zeros_like(rows)
        grad_logits = torch.empty_like(shares[0])  # (rows, dim), of one head after the other
        parts = zip(inner.chunk(len(w2), dim=1), grad_inner.chunk(len(w2), dim=1), strict=True)
        for head, (part, grad_part) in enumerate(parts):
            for now, size in steps_of(ctx.sizes):
                flow = shares[head, now] * per_share[head, :size]  # (size, dim)
                grad_rows[now] += flow
                torch.mul(flow, rows[now] - pooled[head, :size], out=grad_logits[now])
            grad_part.copy_(grad_logits @ w2[head])
            torch.mm(grad_logits.T, part, out=grad_w2[head])
        return grad_inner, grad_w2, grad_rows, None
