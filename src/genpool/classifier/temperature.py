"""The temperature of a classifier: softmax(logits / T) with the T that fits labelled examples.

One number makes the probabilities as sure as the classifier is right, and changes no prediction
(Guo et al., On Calibration of Modern Neural Networks, ICML 2017).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genpool.errors import InputError

Values = NDArray[np.float64]
#: halves of the bracket of 1 / T, which then differ by less than double precision can tell
BISECTIONS = 60
#: a label whose logit is so close to the highest is the predicted one
SMALLEST_MARGIN = 1e-9


def fit_temperature(logits: ArrayLike, gold: ArrayLike) -> float:
    """Returns the temperature that minimises the negative log-likelihood of the gold labels.

    The loss is convex in 1 / T, so there is one minimum at most.

    Args:
        logits: logits or log-probabilities (examples, labels), finite.
        gold: the index of the gold label of every example (examples,).

    Returns:
        T > 0: the probabilities softmax(logits / T) fit the labels best. Above 1, the classifier
        was too sure; below 1, not sure enough.

    Raises:
        InputError: the shapes or values cannot be used, or there is no best temperature: no
            example is predicted wrongly, or the logits say nothing about the labels.

    Example:
        >>> round(fit_temperature([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0]], [0, 0, 1]), 3)
        2.885
    """
    values, indices = np.asarray(logits, np.float64), np.asarray(gold)
    if values.ndim != 2 or not len(values) or values.shape[1] < 2 or len(indices) != len(values):
        raise InputError(
            f"logits have the shape {values.shape} and gold labels {indices.shape}; expected "
            "(examples, labels) and (examples,), with one example and two labels or more."
        )
    if not np.isfinite(values).all():
        raise InputError("logits contain NaN or infinity; expected finite numbers.")
    labels = values.shape[1]
    if indices.dtype.kind not in "iu" or indices.min() < 0 or indices.max() >= labels:
        raise InputError(f"gold labels are not indices of the {labels} labels: 0 to {labels - 1}.")
    values = values - values.max(axis=1, keepdims=True)  # (examples, labels), 0 is the highest
    chosen = values[np.arange(len(values)), indices]  # (examples,)
    if chosen.min() > -SMALLEST_MARGIN:
        raise InputError(
            f"none of the {len(values):,} examples is predicted wrongly, so no temperature is the "
            "best: lower is always better. Calibrate with more examples, and not with those that "
            "the model was trained on."
        )
    if _slope(values, chosen, 0.0) >= 0:
        raise InputError(
            "the predictions agree with the labels no better than chance, so no temperature is the "
            "best: higher is always better. Are these the labels of these examples?"
        )
    low, high = 0.0, 1.0  # 1 / T: the loss falls at `low` and rises at `high`
    while _slope(values, chosen, high) < 0:
        low, high = high, 2 * high
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _slope(values, chosen, middle) < 0 else (low, middle)
    return 2 / (low + high)


def _slope(values: Values, chosen: Values, inverse: float) -> float:
    """Returns the derivative of the loss by 1 / T: the expected logit minus that of the label."""
    weights = np.exp(inverse * values)  # (examples, labels)
    weights /= weights.sum(axis=1, keepdims=True)
    return float(((weights * values).sum(axis=1) - chosen).mean())
