"""Weights in a quarter of the space: 8-bit integers, with one scale for each row.

A row is what the last side of a tensor runs over: the vector of a word, the inputs of one output.
Its largest number becomes 127. Biases and other single rows stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

SCALE = ".scale"
_LARGEST = 127


def quantize_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights with every matrix as 8-bit integers and its scales beside it."""
    result: dict[str, Tensor] = {}
    for name, each in weights.items():
        if each.dim() < 2 or not each.is_floating_point():
            result[name] = each
            continue
        wide = each.detach().float()
        scales = wide.abs().amax(dim=-1).div_(_LARGEST)  # (..., rows)
        divisors = scales.masked_fill(scales == 0, 1).unsqueeze(-1)
        result[name] = (wide / divisors).round_().to(torch.int8)
        result[name + SCALE] = scales
    return result


def dequantize_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What `quantize_weights` was given, rounded."""
    return {
        name: each.float().mul_(weights[name + SCALE].unsqueeze(-1))
        if each.dtype is torch.int8
        else each
        for name, each in weights.items()
        if not name.endswith(SCALE)
    }


def scale_shapes(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The scales that quantized weights of these shapes have, by name."""
    return {name + SCALE: shape[:-1] for name, shape in shapes.items() if len(shape) > 1}
