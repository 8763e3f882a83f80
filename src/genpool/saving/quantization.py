"""Weights in a quarter of the space: 8-bit integers, with one scale for each row.

A row is what the last dimension of a tensor runs over: the vector of a word, the inputs of one
output. Its largest value becomes 127. Biases and other single rows are not changed.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from genpool.tensors.int8_rows import quantize_rows

SCALE = ".scale"


def quantize_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns the weights with every matrix as 8-bit integers, and its scales as NAME.scale."""
    result: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.dim() < 2 or not weight.is_floating_point():
            result[name] = weight
        else:
            integers, scales = quantize_rows(weight.detach().float())
            result[name], result[name + SCALE] = integers, scales.squeeze(-1)  # (..., rows)
    return result


def dequantize_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns the weights that `quantize_weights` was called with, rounded."""
    return {
        name: weight.float().mul_(weights[name + SCALE].unsqueeze(-1))
        if weight.dtype is torch.int8
        else weight
        for name, weight in weights.items()
        if not name.endswith(SCALE)
    }


def scale_shapes(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the scales of quantized weights of these shapes, by name."""
    return {name + SCALE: shape[:-1] for name, shape in shapes.items() if len(shape) > 1}
