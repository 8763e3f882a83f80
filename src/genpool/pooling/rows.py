"""Softmax pooling over packed rows: the same numbers as over a padded tensor, without one.

Packed rows stand in time order, and the sentences that go on at a step are always the first ones
(`genpool.packing`). So a reduction over the tokens of every sentence is a loop over the steps, in
which each step is one operation on neighbouring rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from genpool.packing import Packing


def softmax_pool(logits: Tensor, rows: Tensor, packing: Packing) -> Tensor:
    """Eq. 5-6 over packed rows: sum_t softmax_t(logits)_t * rows_t of every sentence and head.

    logits (heads, rows, dim), which are overwritten; rows (rows, dim) -> (batch, heads, dim).
    """
    heads, _, dim = logits.shape
    pooled = rows.new_zeros(packing.shape[0], heads, dim)
    if not packing.sizes:
        return pooled + logits.sum()  # the sum of nothing: zero, but with a gradient
    by_rank: Tensor = _SoftmaxPool.apply(logits, rows, packing.sizes)  # type: ignore[no-untyped-call]
    owners = packing.sentence[: packing.sizes[0]]  # (sentences that have a token,)
    return pooled.index_copy(0, owners, by_rank.transpose(0, 1))


class _SoftmaxPool(torch.autograd.Function):
    """Sentences stay in the order of the packing: (heads, sentences, dim)."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, rows: Tensor, sizes: tuple[int, ...]) -> Tensor:
        # exp(logits) takes the place of the logits: the tensor is the largest of the whole model.
        if not _exp_is_safe(logits):
            _subtract_peaks(logits, sizes)
        shares = logits.exp_()
        # Long sums in half precision stop growing at 256: they are kept in single precision.
        wide = torch.promote_types(logits.dtype, torch.float32)
        total = torch.zeros_like(logits[:, : sizes[0]], dtype=wide)  # (heads, sentences, dim)
        summed = torch.zeros_like(total)
        for now, size in _steps(sizes):
            share = shares[:, now].to(wide)  # (heads, size, dim)
            total[:, :size] += share
            summed[:, :size].addcmul_(share, rows[now].to(wide))
        pooled = summed.div_(total).to(rows.dtype)
        ctx.save_for_backward(shares, rows, total, pooled)
        ctx.sizes = sizes
        return pooled

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        shares, rows, total, pooled = ctx.saved_tensors
        # d pooled / d logit_t = weight_t * (row_t - pooled);  d pooled / d row_t = weight_t
        per_share = (grads[0] / total).to(shares.dtype)  # (heads, sentences, dim)
        grad_logits = torch.empty_like(shares)
        grad_rows = torch.empty_like(rows)
        for now, size in _steps(ctx.sizes):
            flow = shares[:, now] * per_share[:, :size]  # (heads, size, dim)
            torch.sum(flow, dim=0, out=grad_rows[now])
            torch.mul(flow, rows[now] - pooled[:, :size], out=grad_logits[:, now])
        return grad_logits, grad_rows, None


#: between -SAFE and SAFE, sums of exponentials and their inverses are far from the ends of float32
SAFE = 40.0


def _exp_is_safe(logits: Tensor) -> bool:
    """Whether the softmax needs no subtraction of the largest logit: looking is one pass, not two.

    On other devices the answer would have to be waited for.
    """
    if logits.device.type != "cpu" or logits.dtype not in (torch.float32, torch.float64):
        return False
    low, high = torch.aminmax(logits)
    return bool(low > -SAFE) and bool(high < SAFE)


def _subtract_peaks(logits: Tensor, sizes: tuple[int, ...]) -> None:
    """Makes the largest logit of every sentence, head and dimension zero."""
    peak = logits[:, : sizes[0]].clone()  # (heads, sentences, dim)
    for now, size in _steps(sizes):
        torch.maximum(peak[:, :size], logits[:, now], out=peak[:, :size])
    for now, size in _steps(sizes):
        logits[:, now] -= peak[:, :size]


def _steps(sizes: tuple[int, ...]) -> Iterator[tuple[slice, int]]:
    for start, size in zip(accumulate((0, *sizes)), sizes, strict=False):  # last start: no step
        yield slice(start, start + size), size
