"""Rows of 8-bit integers: one scale for each row, at which its largest value is 127."""

from __future__ import annotations

import torch
from torch import Tensor

MAX_INT8 = 127
#: a row of zeros needs a scale to be divided by
_SMALLEST = 1e-30


def quantize_rows(values: Tensor) -> tuple[Tensor, Tensor]:
    """Returns 8-bit integers (..., rows, dim) and the scales (..., rows, 1) to multiply them by."""
    scales = values.abs().amax(dim=-1, keepdim=True).clamp_(min=_SMALLEST).div_(MAX_INT8)
    return (values / scales).round_().to(torch.int8), scales
