"""Matrix products and generalized pooling with 8-bit weights, for inference on a CPU.

A weight is an integer from -127 to 127 times a scale of its output. The inputs are rounded the same
way, every row with a scale of its own, so that a sentence has the same vector in any batch. Sums
are exact, in 32-bit integers.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from genpool.pooling import GeneralizedPooling, Pooled, Pooling
from genpool.pooling.generalized import by_sentence, pool_heads
from genpool.tensors.packing import MAX_INT8, Packing, quantize_rows


class Int8Product:
    """x -> x W^T for a weight W (outputs, inputs)."""

    def __init__(self, weight: Tensor) -> None:
        values, scales = quantize_rows(weight.detach().float())  # (outputs, inputs), (outputs, 1)
        self.values = values.T.contiguous()  # (inputs, outputs)
        self.scales = scales.flatten()  # (outputs,)
        #: for inputs between -1 and 1, which are multiplied by 127
        self.unit_scales = self.scales / MAX_INT8

    def __call__(self, inputs: Tensor) -> Tensor:
        """inputs (rows, inputs) -> (rows, outputs)"""
        if not len(inputs):
            return inputs.new_empty(0, len(self.scales))
        rounded, scales = quantize_rows(inputs)  # (rows, inputs), (rows, 1)
        sums = torch._int_mm(rounded, self.values)  # (rows, outputs)
        return sums.float().mul_(scales).mul_(self.scales)

    def add_rows_to(self, target: Tensor, inputs: Tensor) -> None:
        """target += inputs W^T"""
        target.add_(self(inputs))

    def of_states(self, states: Tensor) -> Tensor:
        """The same for values between -1 and 1, as integers to be multiplied by `unit_scales`."""
        if not len(states):
            return states.new_empty(0, len(self.scales), dtype=torch.int32)
        return torch._int_mm(states.mul(MAX_INT8).round_().to(torch.int8), self.values)

    def add_to(self, target: Tensor, states: Tensor) -> None:
        """target += states W^T, for states as above."""
        target.addcmul_(self.of_states(states), self.unit_scales)


class Int8GeneralizedPooling:
    """`GeneralizedPooling.pool_rows` with 8-bit weights: the same vectors, up to rounding.

    To pass over the large tensors rarely, a row of hidden values and W2 of a head have one scale.
    """

    def __init__(self, pooling: GeneralizedPooling) -> None:
        self.b1 = pooling.b1.detach().flatten()  # (heads*hidden,)
        self.first = Int8Product(pooling.w1.flatten(0, 1))
        w2 = pooling.w2.detach().float()  # (heads, dim, hidden)
        self.scales = (w2.abs().amax(dim=(1, 2)) / MAX_INT8).clamp(min=1e-30)  # (heads,)
        rounded = (w2 / self.scales[:, None, None]).round().to(torch.int8)
        self.second = [weight.T.contiguous() for weight in rounded]  # heads x (hidden, dim)

    def pool_rows(self, rows: Tensor, packing: Packing, gates: Tensor | None = None) -> Pooled:
        if not len(rows):
            empty = rows.new_zeros(packing.shape[0], len(self.second), rows.shape[1])
            return Pooled(empty.flatten(1), empty, None)
        sums = self.first.of_states(rows)  # (rows, heads*hidden)
        inner = sums.mul(self.first.unit_scales).add_(self.b1).relu_()
        peaks = inner.amax(dim=1, keepdim=True).clamp_(min=1e-30)  # (rows, 1)
        rounded = inner.mul_(MAX_INT8 / peaks).round_().to(torch.int8)
        parts = rounded.view(len(rows), len(self.second), -1).transpose(0, 1).contiguous()
        # b2 is left out: a softmax over time does not depend on what all tokens have in common.
        pooled = [
            pool_heads(partial(self._logits, head, part, peaks), rows, packing.sizes)[0]
            for head, part in enumerate(parts)
        ]  # heads x (sentences, dim)
        heads = by_sentence(torch.stack(pooled), packing)  # (batch, heads, dim)
        return Pooled(heads.flatten(1), heads, None)

    def _logits(self, head: int, hidden: Tensor, peaks: Tensor) -> Tensor:
        scales = peaks * (self.scales[head] / MAX_INT8)  # (rows, 1)
        return torch._int_mm(hidden, self.second[head]).float().mul_(scales)  # (rows, dim)


def int8_pooling(pooling: Pooling) -> Pooling | Int8GeneralizedPooling:
    """Returns the 8-bit form of a pooling, or the pooling itself if it has no large product."""
    return Int8GeneralizedPooling(pooling) if isinstance(pooling, GeneralizedPooling) else pooling
