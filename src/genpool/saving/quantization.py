"""Weights in less space: 8-bit integers with one scale for each row, word tables also in 4 bits.

A row is what the last dimension of a tensor runs over: the vector of a word, the inputs of one
output. In 8 bits its largest value becomes 127. Biases and other single rows are not changed.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from genpool.tensors.quantized_rows import dequantize_rows_int4, quantize_rows, quantize_rows_int4

SCALE = ".scale"
#: how the names of tables end whose rows are words or n-grams: these may be stored in 4 bits
TABLES = ("embedding.words", "embedding.backing.table")


def quantize_weights(weights: Mapping[str, Tensor], int4_tables: bool = False) -> dict[str, Tensor]:
    """Returns the weights with every matrix as integers, and its scales as NAME.scale.

    Args:
        weights: the weights, by name.
        int4_tables: store the tables of words and n-grams in 4 bits, and their scales in half
            precision. Default: False, 8 bits as for all others.
    """
    result: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.dim() < 2 or not weight.is_floating_point():
            result[name] = weight
            continue
        is_int4 = int4_tables and is_table(name)
        quantize = quantize_rows_int4 if is_int4 else quantize_rows
        integers, scales = quantize(weight.detach().float())
        scales = scales.squeeze(-1)  # (..., rows)
        result[name], result[name + SCALE] = integers, scales.half() if is_int4 else scales
    return result


def dequantize_weights(
    weights: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]] | None = None
) -> dict[str, Tensor]:
    """Returns the weights that `quantize_weights` was called with, rounded.

    Args:
        weights: integers and scales, by name.
        shapes: the shapes of the weights, which those in 4 bits need. Default: None.
    """
    result = {}
    for name, weight in weights.items():
        if name.endswith(SCALE):
            continue
        if weight.dtype is torch.int8:
            weight = weight.float().mul_(weights[name + SCALE].unsqueeze(-1))
        elif weight.dtype is torch.uint8:
            scales = weights[name + SCALE].float().unsqueeze(-1)
            dim = (shapes or {}).get(name, (2 * weight.shape[-1],))[-1]
            weight = dequantize_rows_int4(weight, scales, dim)
        result[name] = weight
    return result


def is_table(name: str) -> bool:
    """Returns whether a tensor is a table of words or n-grams, by its name."""
    return name.endswith(TABLES)


def stored_shape(name: str, shape: tuple[int, ...], int4_tables: bool) -> tuple[int, ...]:
    """Returns the shape of the integers of a tensor of this shape."""
    return (*shape[:-1], (shape[-1] + 1) // 2) if int4_tables and is_table(name) else shape


def scale_shapes(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the scales of quantized weights of these shapes, by name."""
    return {name + SCALE: shape[:-1] for name, shape in shapes.items() if len(shape) > 1}
