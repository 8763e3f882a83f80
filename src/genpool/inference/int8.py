"""Matrix products with 8-bit weights, for inference on a CPU.

A weight is a whole number from -127 to 127 times a scale of its own output; what it is multiplied
with is rounded the same way, each row with a scale of its own, so that a sentence gives the same
numbers in whatever batch it stands. Sums are exact, in 32-bit integers.
"""

from __future__ import annotations

import torch
from torch import Tensor

LARGEST = 127


class Int8Product:
    """x -> x W^T for a weight W (outputs, inputs)."""

    def __init__(self, weight: Tensor) -> None:
        wide = weight.detach().float()
        scales = row_scales(wide)  # (outputs, 1)
        self.values = (wide / scales).round_().to(torch.int8).T.contiguous()  # (inputs, outputs)
        self.scales = scales.flatten()  # (outputs,)
        #: for inputs between -1 and 1, which are multiplied by 127
        self.unit_scales = self.scales / LARGEST

    def __call__(self, inputs: Tensor) -> Tensor:
        """inputs (rows, inputs) -> (rows, outputs)"""
        if not len(inputs):
            return inputs.new_empty(0, len(self.scales))
        scales = row_scales(inputs)
        whole = (inputs / scales).round_().to(torch.int8)
        sums = torch._int_mm(whole, self.values)  # (rows, outputs)
        return sums.float().mul_(scales).mul_(self.scales)

    def of_states(self, states: Tensor) -> Tensor:
        """The same for numbers between -1 and 1, as the states of an LSTM are: one known scale.

        Gives whole numbers (rows, outputs), to be multiplied by `unit_scales`.
        """
        if not len(states):
            return states.new_empty(0, len(self.scales), dtype=torch.int32)
        return torch._int_mm(states.mul(LARGEST).round_().to(torch.int8), self.values)

    def add_to(self, target: Tensor, states: Tensor) -> None:
        """target += states W^T, for states as above."""
        target.addcmul_(self.of_states(states), self.unit_scales)


def row_scales(values: Tensor) -> Tensor:
    """(rows, 1): the scale at which the largest number of a row is 127."""
    return values.abs().amax(dim=1, keepdim=True).clamp_(min=1e-30).div_(LARGEST)
