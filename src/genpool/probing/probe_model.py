"""The part of a probe that is trained: a mix of layers, a pooling and a linear classifier."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from genpool.errors import InputError, unknown_name
from genpool.pooling import POOLINGS, Pooled, Pooling
from genpool.tensors.packing import Packing

#: a dimension that never changes is not divided by its deviation of zero
SMALLEST_DEVIATION = 1e-6


class LayerMix(nn.Module):
    """The mean of several layers, with one learned weight per layer (as in ELMo).

    Args:
        layers: number of layers. All of them start with the same weight.
    """

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(layers))

    def forward(self, rows: Tensor) -> Tensor:
        """(rows, layers, dim) -> (rows, dim)"""
        return torch.einsum("l,rld->rd", self.scores.softmax(dim=0), rows)


class ProbeModel(nn.Module):
    """Token states in, logits out.

    States are standardized with the mean and the deviation of the training tokens, and the pooled
    vectors with those of the training texts, so that one learning rate suits every encoder.

    Args:
        pooling: the pooling, for the dimensions of the states.
        layers: number of layers of the states.
        classes: number of labels.
        dropout: probability that a dimension of the pooled vector is dropped in training.
    """

    state_mean: Tensor
    state_std: Tensor
    vector_mean: Tensor
    vector_std: Tensor

    def __init__(self, pooling: Pooling, layers: int, classes: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.mix = LayerMix(layers) if layers > 1 else None
        self.pooling = pooling
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(pooling.output_dim, classes)
        for name, size in (("state", pooling.input_dim), ("vector", pooling.output_dim)):
            self.register_buffer(f"{name}_mean", torch.zeros(size))
            self.register_buffer(f"{name}_std", torch.ones(size))

    @property
    def is_trained(self) -> bool:
        """Whether anything below the classifier has parameters."""
        return self.mix is not None or any(True for _ in self.pooling.parameters())

    def mixed(self, rows: Tensor) -> Tensor:
        """Returns the layers as one: (rows, layers, dim) -> (rows, dim)."""
        mixed: Tensor = rows.squeeze(1) if self.mix is None else self.mix(rows)
        return mixed

    def standardized(self, rows: Tensor) -> Tensor:
        """Returns what is pooled: (rows, layers, dim) -> (rows, dim)."""
        return (self.mixed(rows) - self.state_mean) / self.state_std

    def pool(self, rows: Tensor, packing: Packing) -> Pooled:
        """Pools packed states (rows, layers, dim)."""
        return self.pooling.pool_rows(self.standardized(rows), packing)

    def forward(self, rows: Tensor, packing: Packing) -> Tensor:
        """(rows, layers, dim) -> logits (batch, classes)"""
        vectors = (self.pool(rows, packing).vector - self.vector_mean) / self.vector_std
        logits: Tensor = self.classifier(self.dropout(vectors))
        return logits

    def set_scale(self, name: str, mean: Tensor, std: Tensor) -> None:
        """Sets mean and deviation of the "state" or the "vector"."""
        getattr(self, f"{name}_mean").copy_(mean)
        getattr(self, f"{name}_std").copy_(std.clamp(min=SMALLEST_DEVIATION))


def build_pooling(name: str, dim: int, bidirectional: bool, options: dict[str, Any]) -> Pooling:
    """Returns a pooling by name, for token states of any encoder.

    Args:
        name: a name of `POOLINGS`.
        dim: dimensions of a state.
        bidirectional: whether states are [forward ; backward].
        options: options of the pooling; those that it does not know are left out.

    Raises:
        InputError: the name is unknown, or the pooling needs the gates of an LSTM.
    """
    usable = [key for key, cls in POOLINGS.items() if not cls.needs_gates]
    if name not in usable:
        raise InputError(unknown_name("pooling of a probe", name, usable))
    cls = POOLINGS[name]
    if cls.needs_direction:
        options = {**options, "bidirectional": bidirectional}
    known = cls.__init__.__annotations__
    return cls(dim, **{key: value for key, value in options.items() if key in known})
