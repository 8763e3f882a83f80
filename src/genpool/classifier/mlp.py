"""The top-layer classifier: two hidden layers with a shortcut (the paper's Sec. 3.3)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from genpool.errors import InputError
from genpool.tensors.dropout import Dropout


class MLP(nn.Module):
    """x -> ReLU -> [x ; h1] -> ReLU -> logits; dropout after each hidden layer.

    Args:
        input_dim: width of a sentence vector, or four times that for a pair.
        hidden_dim: width of both hidden layers.
        classes: number of labels.
    """

    def __init__(
        self, input_dim: int, hidden_dim: int = 300, classes: int = 3, dropout: float = 0.5
    ) -> None:
        super().__init__()
        if min(input_dim, hidden_dim, classes) < 1:
            raise InputError(
                f"input_dim={input_dim}, hidden_dim={hidden_dim}, classes={classes}; "
                "all must be 1 or more."
            )
        self.first = nn.Linear(input_dim, hidden_dim)
        self.second = nn.Linear(input_dim + hidden_dim, hidden_dim)
        self.output = nn.Linear(hidden_dim, classes)
        self.dropout = Dropout(dropout)

    def forward(self, features: Tensor) -> Tensor:
        """(batch, input_dim) -> logits (batch, classes)"""
        first = self.dropout(self.first(features).relu())  # (batch, hidden_dim)
        joined = torch.cat([features, first], dim=-1)  # (batch, input_dim + hidden_dim)
        second = self.dropout(self.second(joined).relu())  # (batch, hidden_dim)
        logits: Tensor = self.output(second)
        return logits
