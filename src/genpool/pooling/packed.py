"""Attention pooling over packed rows: the vectors of Eq. 5-6 without a padded tensor.

Packed rows are in time order, and the sentences that continue at a step are always the first ones
(`genpool.tensors.packing`). So a reduction over the tokens of every sentence is a loop over the
steps, in which each step is one operation on contiguous rows.

In training, heads are processed one after the other, so that the gradients of their logits, the
largest tensors of the model, never exist at the same time. Without gradients, all heads together
take fewer operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor

from genpool.tensors.packing import Packing


def attention_pool(inner: Tensor, w2: Tensor, b2: Tensor, rows: Tensor, packing: Packing) -> Tensor:
    """Returns Eq. 5-6 over packed rows: sum_t softmax_t(W2^i inner^i + b2^i)_t * rows_t.

    inner (rows, heads*hidden); w2 (heads, dim, hidden); b2 (heads, dim); rows (rows, dim)
    -> (batch, heads, dim).
    """
    # b2 is the same for all tokens, so that a softmax over time does not depend on it and its
    # gradient is zero. It stays in the graph, because every parameter must have a gradient.
    unused = 0 * b2  # (heads, dim)
    if not packing.sizes:
        zero = inner.sum() + w2.sum() * 0 + rows.sum()  # with gradients
        return rows.new_zeros(packing.shape[0], *w2.shape[:2]) + zero + unused
    # Autocast would choose a type for each multiplication; in-place sums need one type for all.
    with torch.autocast(rows.device.type, enabled=False):
        weights = w2.to(inner.dtype)
        if torch.is_grad_enabled():
            by_rank: Tensor = _AttentionPool.apply(inner, weights, rows, packing.sizes)  # type: ignore[no-untyped-call]
        else:
            parts = inner.view(len(rows), len(w2), -1).transpose(0, 1)  # (heads, rows, hidden)
            by_rank = pool_heads(lambda: torch.bmm(parts, weights.mT), rows, packing.sizes).pooled
    return by_sentence(by_rank, packing) + unused


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
