"""Rows of 8-bit integers: against loops in Python."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from genpool.tensors.quantized_rows import quantize_rows


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
