"""4-bit rows: two values in a byte, with the scale of the smallest error."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from genpool.tensors.int4_rows import dequantize_rows_int4, quantize_rows_int4


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
