"""Generalized pooling: vector-based multi-head attention (the paper's Eq. 4-6).

`generalized_weights` is the equations over a padded tensor. `attention_pool` returns the same
vectors over packed rows, without making one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from genpool.errors import InputError, unknown_name
from genpool.pooling.base import Pooled, Pooling, require_positive, require_std
from genpool.pooling.masking import hide_padding, masked_softmax, weighted_sum
from genpool.pooling.starts import STARTS
from genpool.tensors.packing import Packing


def generalized_weights(
    states: Tensor, mask: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor
) -> Tensor:
    """Returns Eq. 5, A^i = softmax(W2^i ReLU(W1^i H^T + b1^i) + b2^i)^T, over the real tokens.

    states (batch, time, input_dim); w1 (heads, hidden, input_dim); b1 (heads, hidden);
    w2 (heads, input_dim, hidden); b2 (heads, input_dim) -> (batch, heads, time, input_dim).
    """
    rows = hide_padding(states, mask).flatten(0, 1)  # (batch*time, input_dim)
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

    keeps_weight_ratios = True
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
            mask: (batch, time), True or 1 at real tokens, False or 0 at padding.

        Returns:
            Vectors (batch, heads * input_dim), heads (batch, heads, input_dim), weights (batch,
            heads, time, input_dim).

        Raises:
            InputError: a shape or a type does not fit.
        """
        mask = self.check(states, mask)
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


# Packed rows are in time order, and the sentences that continue at a step are always the first ones
# (`genpool.tensors.packing`). So a reduction over the tokens of every sentence is a loop over the
# steps, in which each step is one operation on contiguous rows.
#
# In training, heads are processed one after the other, so that the gradients of their logits, the
# largest tensors of the model, never exist at the same time. Without gradients, all heads together
# take fewer operations.


def attention_pool(inner: Tensor, w2: Tensor, rows: Tensor, packing: Packing) -> Tensor:
    """Returns Eq. 5-6 over packed rows: sum_t softmax_t(W2^i inner^i)_t * rows_t per sentence.

    inner (rows, heads*hidden); w2 (heads, dim, hidden); rows (rows, dim) -> (batch, heads, dim).
    """
    if not packing.sizes:
        zero = inner.sum() + w2.sum() * 0 + rows.sum()  # with gradients
        return rows.new_zeros(packing.shape[0], *w2.shape[:2]) + zero
    # Autocast would choose a type for each multiplication; in-place sums need one type for all.
    with torch.autocast(rows.device.type, enabled=False):
        weights = w2.to(inner.dtype)
        if torch.is_grad_enabled():
            by_rank: Tensor = _AttentionPool.apply(inner, weights, rows, packing.sizes)  # type: ignore[no-untyped-call]
        else:
            parts = inner.view(len(rows), len(w2), -1).transpose(0, 1)  # (heads, rows, hidden)
            by_rank = pool_heads(lambda: torch.bmm(parts, weights.mT), rows, packing.sizes).pooled
    return by_sentence(by_rank, packing)


def by_sentence(by_rank: Tensor, packing: Packing) -> Tensor:
    """Reorders heads (heads, sentences, dim) from the packing's order to (batch, heads, dim)."""
    owners = packing.sentence[: packing.sizes[0]]  # (sentences that have a token,)
    heads = by_rank.transpose(0, 1)
    empty = heads.new_zeros(packing.shape[0], *heads.shape[1:])
    return empty.index_copy(0, owners, heads)


class PooledHeads(NamedTuple):
    """exp(logits) (..., rows, dim), their sums and the pooled rows (..., sentences, dim)."""

    shares: Tensor
    total: Tensor
    pooled: Tensor


def pool_heads(
    make_logits: Callable[[], Tensor], rows: Tensor, sizes: tuple[int, ...]
) -> PooledHeads:
    """Softmax and weighted sum; the logits (rows, dim) or (heads, rows, dim) are overwritten.

    The largest logit is subtracted only where it must be, because that takes two passes and trained
    logits are seldom large: the sums show whether exponentials overflowed or vanished, and then the
    logits are computed again.
    """
    logits = make_logits()
    # Half precision overflows early, and on other devices reading the sums would synchronize.
    if logits.device.type == "cpu" and logits.dtype in (torch.float32, torch.float64):
        head = _exponential_sums(logits, rows, sizes)
        if _within_range(head.total):
            return head
        logits = make_logits()
    _subtract_peaks(logits, sizes)
    return _exponential_sums(logits, rows, sizes)


def _exponential_sums(logits: Tensor, rows: Tensor, sizes: tuple[int, ...]) -> PooledHeads:
    shares = logits.exp_()
    # Long sums in half precision stop growing at 256: they are kept in single precision.
    sum_type = torch.promote_types(logits.dtype, torch.float32)
    total = torch.zeros_like(logits[..., : sizes[0], :], dtype=sum_type)  # (..., sentences, dim)
    summed = torch.zeros_like(total)
    for now, size in _steps(sizes):
        share = shares[..., now, :].to(sum_type)  # (..., size, dim)
        total[..., :size, :] += share
        summed[..., :size, :].addcmul_(share, rows[now].to(sum_type))
    return PooledHeads(shares, total, summed.div_(total).to(rows.dtype))


#: sums of exponentials between these, and their inverses, are far from the limits of float32
MIN_EXPONENTIAL_SUM, MAX_EXPONENTIAL_SUM = 1e-20, 1e20


def _within_range(total: Tensor) -> bool:
    low, high = torch.aminmax(total)
    return bool(low > MIN_EXPONENTIAL_SUM) and bool(high < MAX_EXPONENTIAL_SUM)  # False for NaN


def _subtract_peaks(logits: Tensor, sizes: tuple[int, ...]) -> None:
    """Subtracts the largest logit of every sentence and dimension, in place."""
    peak = logits[..., : sizes[0], :].clone()  # (..., sentences, dim)
    for now, size in _steps(sizes):
        running = peak[..., :size, :]
        torch.maximum(running, logits[..., now, :], out=running)
    for now, size in _steps(sizes):
        logits[..., now, :] -= peak[..., :size, :]


class _AttentionPool(torch.autograd.Function):
    """Sentences stay in the order of the packing: (heads, sentences, dim)."""

    @staticmethod
    def forward(
        ctx: Any, inner: Tensor, w2: Tensor, rows: Tensor, sizes: tuple[int, ...]
    ) -> Tensor:
        shares = inner.new_empty(len(w2), *rows.shape)  # (heads, rows, dim)
        parts = inner.chunk(len(w2), dim=1)  # heads x (rows, hidden)
        heads = [
            pool_heads(lambda n=n: torch.mm(parts[n], w2[n].T, out=shares[n]), rows, sizes)  # type: ignore[misc]
            for n in range(len(w2))
        ]
        total = torch.stack([head.total for head in heads])  # (heads, sentences, dim)
        pooled = torch.stack([head.pooled for head in heads])  # (heads, sentences, dim)
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
            for now, size in _steps(ctx.sizes):
                flow = shares[head, now] * per_share[head, :size]  # (size, dim)
                grad_rows[now] += flow
                torch.mul(flow, rows[now] - pooled[head, :size], out=grad_logits[now])
            grad_part.copy_(grad_logits @ w2[head])
            torch.mm(grad_logits.T, part, out=grad_w2[head])
        return grad_inner, grad_w2, grad_rows, None


def _steps(sizes: tuple[int, ...]) -> Iterator[tuple[slice, int]]:
    for start, size in zip(accumulate((0, *sizes)), sizes, strict=False):  # last start: no step
        yield slice(start, start + size), size
