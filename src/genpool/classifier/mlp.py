"""The features of a pair, and the top-layer classifier: two hidden layers with a shortcut."""

from __future__ import annotations

import torch
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
