"""Vectors of length 1: against exact arithmetic, at any magnitude."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from genpool.tensors.unit_rows import unit_rows


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
