"""Rows of 8-bit and of 4-bit integers, each row with one scale to multiply it by."""

from __future__ import annotations

import torch
from torch import Tensor

MAX_INT8 = 127
MAX_INT4 = 7
#: parts of a row's largest value that are tried as the end of its 4-bit scale: clipping the largest
#: values leaves smaller steps for the others
_CLIPS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
#: a row of zeros needs a scale to be divided by
_SMALLEST = 1e-30
#: rows that are unpacked together, within a processor's cache
_UNPACK_ROWS = 2048


def quantize_rows(values: Tensor) -> tuple[Tensor, Tensor]:
    """Returns 8-bit integers (..., rows, dim) and the scales (..., rows, 1) to multiply them by."""
    scales = values.abs().amax(dim=-1, keepdim=True).clamp_(min=_SMALLEST).div_(MAX_INT8)
    return (values / scales).round_().to(torch.int8), scales


def quantize_rows_int4(values: Tensor) -> tuple[Tensor, Tensor]:
    """Returns bytes (rows, (dim + 1) // 2) and the scales (rows, 1) of the smallest squared error.

    The low half of a byte is the earlier value. Halves contain the integer plus 8, so that a zero
    byte, which no row has, is a sign of damage; an odd row ends with a half of 8.
    """
    largest = values.abs().amax(dim=-1, keepdim=True).clamp(min=_SMALLEST)  # (rows, 1)
    best_error = torch.full_like(largest, torch.inf)
    best, best_scales = torch.zeros_like(values), largest / MAX_INT4
    for clip in _CLIPS:
        scales = largest * (clip / MAX_INT4)  # (rows, 1)
        integers = (values / scales).round().clamp(-MAX_INT4, MAX_INT4)  # (rows, dim)
        error = (integers * scales - values).square().sum(dim=-1, keepdim=True)  # (rows, 1)
        is_better = error < best_error
        best = torch.where(is_better, integers, best)
        best_scales = torch.where(is_better, scales, best_scales)
        best_error = torch.where(is_better, error, best_error)
    halves = best.to(torch.int16) + 8  # (rows, dim)
    if values.shape[-1] % 2:
        halves = torch.nn.functional.pad(halves, (0, 1), value=8)
    packed = halves[..., 0::2] + 16 * halves[..., 1::2]  # (rows, (dim + 1) // 2)
    return packed.to(torch.uint8), best_scales


def dequantize_rows_int4(packed: Tensor, scales: Tensor, dim: int) -> Tensor:
    """Returns the values (rows, dim) of bytes (rows, (dim + 1) // 2) and scales (rows, 1)."""
    pairs = scales.new_empty(*packed.shape, 2)  # (rows, (dim + 1) // 2, 2)
    parts = (torch.split(tensor, _UNPACK_ROWS) for tensor in (packed, scales.unsqueeze(-1), pairs))
    for packed_part, scales_part, pairs_part in zip(*parts, strict=True):
        pairs_part[..., 0], pairs_part[..., 1] = packed_part & 15, packed_part >> 4
        pairs_part.sub_(8).mul_(scales_part)
    return pairs.flatten(-2)[..., :dim].contiguous()
