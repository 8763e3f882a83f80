"""The MLP and the features of a pair, in NumPy and value by value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """bias_i + sum_j weight_ij x_j"""
    result = []
    for row, start in zip(weight, bias, strict=True):
        total = float(start)
        for value, factor in zip(x, row, strict=True):
            total += float(value) * float(factor)
        result.append(total)
    return np.array(result)


def mlp(
    x: np.ndarray,
    layers: Sequence[tuple[np.ndarray, np.ndarray]],
    kept: Sequence[np.ndarray] | None = None,
) -> np.ndarray:
    """Logits of one example: x -> ReLU -> [x ; h1] -> ReLU -> output.

    kept: the factors of dropout for h1 and h2; None has no dropout.
    """
    (w1, b1), (w2, b2), (w3, b3) = layers
    h1 = np.maximum(linear(x, w1, b1), 0) * (1 if kept is None else kept[0])
    h2 = np.maximum(linear(np.append(x, h1), w2, b2), 0) * (1 if kept is None else kept[1])
    return linear(h2, w3, b3)


def pair_features(a: Sequence[float], b: Sequence[float]) -> list[float]:
    """[a ; b ; |a - b| ; a * b]"""
    pairs = list(zip(a, b, strict=True))
    return [*a, *b, *(abs(x - y) for x, y in pairs), *(x * y for x, y in pairs)]
