"""4-bit rows: two values in a byte, with the scale of the smallest error."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from genpool.tensors.quantized_rows import dequantize_rows_int4, quantize_rows_int4


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
    for row, error in zip(rows.numpy(), errors.tolist(), strict=True):
        grid = [
            ((np.clip(np.round(row / step), -7, 7) * step - row) ** 2).sum()
            for step in np.linspace(0.4, 1.0, 61) * np.abs(row).max() / 7
        ]
        assert min(grid) <= error + 1e-4 and error <= 1.35 * min(grid)


def test_rows_keep_their_direction() -> None:
    rows = torch.from_numpy(np.random.default_rng(1).normal(size=(50, 160))).float()
    rows[3] *= 1e-4
    packed, scales = quantize_rows_int4(rows)
    back = dequantize_rows_int4(packed, scales, 160)
    cosines = torch.nn.functional.cosine_similarity(back, rows, dim=1)
    assert cosines.min() > 0.985


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


def test_no_rows_are_unpacked_to_none() -> None:
    empty = torch.empty(0, 3, dtype=torch.uint8)
    assert dequantize_rows_int4(empty, torch.empty(0, 1), 5).shape == (0, 5)
