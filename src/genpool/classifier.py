"""From sentence vectors to labels: the features of a pair, an MLP on top, and its temperature.

One number, the temperature, makes the probabilities as sure as the classifier is right, and changes
no prediction (Guo et al., On Calibration of Modern Neural Networks, ICML 2017).
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from genpool.errors import InputError
from genpool.registry import Configured
from genpool.tensors.modules import (
    Dropout,
    DropoutScaling,
    Initialization,
    gaussian_,
    require_literal,
    require_positive,
)

Values = NDArray[np.float64]
#: halves of the bracket of 1 / T, which then differ by less than double precision can tell
BISECTIONS = 60
#: a label whose logit is so close to the highest is the predicted one
SMALLEST_MARGIN = 1e-9


class MLP(Configured, nn.Module):
    """x -> ReLU -> [x ; h1] -> ReLU -> logits; dropout after each hidden layer (Sec. 3.3).

    Args:
        input_dim: dimension of a sentence vector, or four times that for a pair.
        hidden_dim: dimension of both hidden layers. Default: 300.
        classes: number of labels. Default: 3.
        dropout: probability that a hidden value is dropped in training. Default: 0.5.
        initialization: "torch" for the initial weights of `nn.Linear`, "gaussian" for standard
            deviation 0.01 and zero biases as in the released program. Default: "torch".
        dropout_scaling: as `scaling` in `Dropout`. Default: "inverted".

    Raises:
        InputError: a size is below 1, or a name is unknown.
    """

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int = 300,
        classes: int = 3,
        dropout: float = 0.5,
        initialization: Initialization = "torch",
        dropout_scaling: DropoutScaling = "inverted",
    ) -> None:
        super().__init__()
        require_positive(input_dim=input_dim, hidden_dim=hidden_dim, classes=classes)
        require_literal("initialization", initialization, Initialization)
        self.first = nn.Linear(input_dim, hidden_dim)
        self.second = nn.Linear(input_dim + hidden_dim, hidden_dim)
        self.output = nn.Linear(hidden_dim, classes)
        self.dropout = Dropout(dropout, dropout_scaling)
        if initialization == "gaussian":  # "torch" is what the layers begin with
            layers = (self.first, self.second, self.output)
            gaussian_((layer.weight for layer in layers), (layer.bias for layer in layers))

    def forward(self, features: Tensor) -> Tensor:
        """Returns the logits (batch, classes) of features (batch, input_dim)."""
        first = self.dropout(self.first(features).relu())  # (batch, hidden_dim)
        joined = torch.cat([features, first], dim=-1)  # (batch, input_dim + hidden_dim)
        second = self.dropout(self.second(joined).relu())  # (batch, hidden_dim)
        logits: Tensor = self.output(second)
        return logits


def pair_features(first: Tensor, second: Tensor) -> Tensor:
    """Returns [a ; b ; |a - b| ; a * b] (batch, 4 dim) of two vectors (batch, dim): Eq. 10.

    InputError if the two shapes differ.
    """
    if first.shape != second.shape:
        raise InputError(
            f"the two sides have shapes {tuple(first.shape)} and {tuple(second.shape)}; "
            "expected the same."
        )
    return torch.cat([first, second, (first - second).abs(), first * second], dim=-1)


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
