"""Rows of 8-bit and 4-bit integers, and of length 1: against loops and exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from genpool.tensors.arrays import unit_rows
from genpool.tensors.packing import (
    dequantize_rows_int4,
    quantize_rows,
    quantize_rows_int4,
)


def test_a_hand_worked_row() -> None:
    packed, scales = quantize_rows_int4(torch.tensor([[7.0, -7.0, 1.0], [0.0, 0.0, 0.0]]))
    assert scales.tolist()[0] == pytest.approx([1.0])
    # 7 + 8 = 15 and -7 + 8 = 1 in the first byte; 1 + 8 = 9 and a half of 8 in the second
    assert packed.tolist() == [[15 + 16 * 1, 9 + 16 * 8], [8 + 16 * 8, 8 + 16 * 8]]
    values = dequantize_rows_int4(packed, scales, 3)
    assert torch.equal(values, torch.tensor([[7.0, -7.0, 1.0], [0.0, 0.0, 0.0]]))


def test_no_other_scale_of_a_fine_grid_is_much_better() -> None:
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(20, 33))).float()
    packed, scales = quantize_rows_int4(rows)
    assert packed.shape == (20, 17) and packed.dtype is torch.uint8
    errors = (dequantize_rows_int4(packed, scales, 33) - rows).square().sum(dim=1)
    factors = torch.where(torch.arange(20) % 2 == 0, 2.0**-13, 1.0).unsqueeze(1)  # about 1e-4
    small, small_scales = quantize_rows_int4(rows * factors)  # rows have scales of their own
    assert torch.equal(small, packed) and torch.equal(small_scales, scales * factors)
    for row, error in zip(rows.numpy(), errors.tolist(), strict=True):
        grid = [
            ((np.clip(np.round(row / step), -7, 7) * step - row) ** 2).sum()
            for step in np.linspace(0.4, 1.0, 61) * np.abs(row).max() / 7
        ]
        assert min(grid) <= error + 1e-4 and error <= 1.35 * min(grid)


@pytest.mark.parametrize("dim", [5, 6])
def test_unpacking_many_rows_as_a_loop_over_bytes_does(dim: int) -> None:
    random = np.random.default_rng(2)
    packed = random.integers(0, 256, (5000, (dim + 1) // 2)).astype(np.uint8)
    scales = random.uniform(0.1, 1, (5000, 1)).astype(np.float32)
    values = dequantize_rows_int4(torch.from_numpy(packed), torch.from_numpy(scales), dim)
    assert values.is_contiguous() and values.dtype is torch.float32
    for row in (0, 2047, 2048, 4999):
        halves = [half for byte in packed[row].tolist() for half in (byte % 16, byte // 16)]
        expected = [np.float32(half - 8) * scales[row, 0] for half in halves[:dim]]
        assert values[row].tolist() == expected


@pytest.mark.parametrize("shape", [(4, 9), (2, 3, 5), (1, 1), (0, 3)])
def test_every_value_is_rounded_at_the_scale_of_its_row(shape: tuple[int, ...]) -> None:
    values = torch.randn(shape, generator=torch.Generator().manual_seed(0)) * 3
    integers, scales = quantize_rows(values)
    assert integers.dtype is torch.int8 and integers.shape == values.shape
    assert scales.shape == (*shape[:-1], 1)
    rows = values.reshape(-1, shape[-1]).numpy()
    for row, rounded, scale in zip(
        rows, integers.reshape(-1, shape[-1]).tolist(), scales.flatten().tolist(), strict=True
    ):
        expected = np.float32(max(abs(value) for value in row)) / np.float32(127)
        assert scale == pytest.approx(expected, rel=1e-6)
        assert max(abs(value) for value in rounded) == 127
        assert rounded == [int(np.rint(value / np.float32(scale))) for value in row]


def test_a_row_of_zeros_stays_zeros() -> None:
    integers, scales = quantize_rows(torch.tensor([[0.0, 0.0], [0.0, 1.0]]))
    assert integers.tolist() == [[0, 0], [0, 127]]
    assert (integers * scales)[0].tolist() == [0.0, 0.0] and torch.isfinite(scales).all()


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1.0, 1e200, 1e300])
def test_rows_have_length_1_and_their_direction(scale: float) -> None:
    vectors = np.random.default_rng(0).standard_normal((5, 7)) * scale
    for vector, unit in zip(vectors, unit_rows(vectors), strict=True):
        square = sum((Fraction(float(value)) ** 2 for value in unit), Fraction(0))
        assert abs(square - 1) < Fraction(1, 10**14)
        quotients = unit / (vector / scale)
        assert np.allclose(quotients, quotients[0], rtol=1e-13) and quotients[0] > 0


def test_zeros_stay_zeros_and_nothing_stays_nothing() -> None:
    assert unit_rows(np.array([[0.0, 0.0], [3.0, -4.0]])).tolist() == [[0, 0], [0.6, -0.8]]
    assert unit_rows(np.zeros((0, 3))).shape == (0, 3)
    assert unit_rows(np.zeros((2, 0))).shape == (2, 0)
