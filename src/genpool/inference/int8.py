"""Matrix products with 8-bit weights, for inference on a CPU.

A weight is an integer from -127 to 127 times a scale of its output. The inputs are rounded the same
way, every row with a scale of its own, so that a sentence has the same vector in any batch. Sums
are exact, in 32-bit integers.
"""

from __future__ import annotations

import torch
from torch import Tensor

from genpool.tensors.quantized_rows import MAX_INT8, quantize_rows


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

    def of_states(self, states: Tensor) -> Tensor:
        """The same for values between -1 and 1, as the states of an LSTM are: one known scale.

        Returns integers (rows, outputs), to be multiplied by `unit_scales`.
        """
        if not len(states):
            return states.new_empty(0, len(self.scales), dtype=torch.int32)
        return torch._int_mm(states.mul(MAX_INT8).round_().to(torch.int8), self.values)

    def add_to(self, target: Tensor, states: Tensor) -> None:
        """target += states W^T, for states as above."""
        target.addcmul_(self.of_states(states), self.unit_scales)
