"""Generalized pooling with 8-bit weights, over the states of an LSTM."""

from __future__ import annotations

import torch
from torch import Tensor

from genpool.inference.int8 import LARGEST, Int8Product
from genpool.pooling import GeneralizedPooling, Pooled
from genpool.pooling.rows import by_sentence, pool_heads
from genpool.tensors.packing import Packing


class Int8GeneralizedPooling:
    """What `GeneralizedPooling.pool_rows` gives, up to rounding.

    The passes over the large tensors, not the products, take most of the time here, so there are
    as few of them as can be: one scale for the inner numbers of a row, and one for each head's W2.
    """

    def __init__(self, pooling: GeneralizedPooling) -> None:
        self.b1 = pooling.b1.detach().flatten()  # (heads*hidden,)
        self.first = Int8Product(pooling.w1.flatten(0, 1))
        w2 = pooling.w2.detach().float()  # (heads, dim, hidden)
        self.scales = (w2.abs().amax(dim=(1, 2)) / LARGEST).clamp(min=1e-30)  # (heads,)
        whole = (w2 / self.scales[:, None, None]).round().to(torch.int8)
        self.second = [each.T.contiguous() for each in whole]  # heads x (hidden, dim)

    def pool_rows(self, rows: Tensor, packing: Packing, gates: Tensor | None = None) -> Pooled:
        if not len(rows):
            empty = rows.new_zeros(packing.shape[0], len(self.second), rows.shape[1])
            return Pooled(empty.flatten(1), empty, None)
        sums = self.first.of_states(rows)  # (rows, heads*hidden)
        inner = sums.mul(self.first.unit_scales).add_(self.b1).relu_()
        peaks = inner.amax(dim=1, keepdim=True).clamp_(min=1e-30)  # (rows, 1)
        whole = inner.mul_(LARGEST / peaks).round_().to(torch.int8)
        parts = whole.view(len(rows), len(self.second), -1).transpose(0, 1).contiguous()
        pooled = torch.stack(
            [
                self._head(number, part, peaks, rows, packing.sizes)
                for number, part in enumerate(parts)
            ]
        )  # (heads, sentences, dim)
        heads = by_sentence(pooled, packing)  # (batch, heads, dim)
        return Pooled(heads.flatten(1), heads, None)

    def _head(
        self, number: int, part: Tensor, peaks: Tensor, rows: Tensor, sizes: tuple[int, ...]
    ) -> Tensor:
        scales = peaks * (self.scales[number] / LARGEST)  # (rows, 1)

        # b2 is left out: a softmax over time does not see what all tokens have in common.
        def logits() -> Tensor:
            return torch._int_mm(part, self.second[number]).float().mul_(scales)  # (rows, dim)

        return pool_heads(logits, rows, sizes).pooled
