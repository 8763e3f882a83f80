"""The temperature that fits logits to labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from genpool.classifier import fit_temperature
from genpool.errors import InputError


def loss(logits: NDArray[np.float64], gold: NDArray[np.int64], temperature: float) -> float:
    """The negative log-likelihood, row by row."""
    rows = [
        logsumexp(row / temperature) - row[label] / temperature
        for row, label in zip(logits, gold, strict=True)
    ]
    return float(np.mean(rows))


def drawn(seed: int, rows: int, labels: int, temperature: float) -> tuple[NDArray, NDArray]:
    """Logits, and labels that are drawn from their softmax at a temperature."""
    random = np.random.default_rng(seed)
    logits = random.normal(scale=3, size=(rows, labels))
    noise = random.gumbel(size=(rows, labels))
    return logits, (logits / temperature + noise).argmax(axis=1)


@pytest.mark.parametrize(("labels", "temperature"), [(2, 0.3), (3, 1.0), (7, 2.5), (3, 12.0)])
def test_the_minimum_is_that_of_scipy(labels: int, temperature: float) -> None:
    logits, gold = drawn(labels, 400, labels, temperature)
    found = fit_temperature(logits, gold)
    best = minimize_scalar(
        lambda power: loss(logits, gold, math.exp(power)),
        bounds=(-6, 6),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert found == pytest.approx(math.exp(best.x), rel=1e-5)
    assert loss(logits, gold, found) <= best.fun + 1e-12


def test_hand_worked_case_of_three_rows() -> None:
    # Two of three are right, so the best probability is 2/3: 2 / T = log 2.
    found = fit_temperature([[2.0, 0.0]] * 3, [0, 0, 1])
    assert found == pytest.approx(2 / math.log(2), rel=1e-12)


@settings(deadline=None)  # the first case also loads packages
@given(seed=st.integers(0, 10_000), rows=st.integers(3, 40), scale=st.floats(0.01, 100))
def test_no_other_temperature_is_better(seed: int, rows: int, scale: float) -> None:
    logits, gold = drawn(seed, rows, 3, 2.0)
    logits = scale * logits
    try:
        found = fit_temperature(logits, gold)
    except InputError:
        assume(False)
    for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0):
        assert loss(logits, gold, found) <= loss(logits, gold, factor * found) + 1e-9


@pytest.mark.parametrize(
    ("logits", "gold", "message"),
    [
        ([[2.0, 0.0], [0.0, 1.0]], [0, 1], "none of the 2 examples is predicted wrongly"),
        ([[1.0, 1.0]], [1], "none of the 1 examples"),
        ([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0]], [1, 1, 0], "no better than chance"),
        ([[1.0, 2.0]], [0, 1], r"shape \(1, 2\) and gold labels \(2,\)"),
        ([[1.0]], [0], "two labels or more"),
        (np.zeros((0, 3)), np.zeros(0, int), r"shape \(0, 3\).*one example"),
        ([[1.0, math.nan]], [0], "NaN or infinity"),
        ([[1.0, 2.0]], [2], "not indices of the 2 labels: 0 to 1"),
        ([[1.0, 2.0]], [0.5], "not indices"),
    ],
)
def test_without_a_best_temperature_the_reason_is_told(
    logits: object, gold: object, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        fit_temperature(logits, gold)  # type: ignore[arg-type]
