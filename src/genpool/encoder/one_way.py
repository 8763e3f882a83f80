"""One-way recurrent encoders: LSTM and GRU."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from genpool.encoder.base import Encoder, require_layers, require_positive
from genpool.encoder.lstm import LSTMDirection
from genpool.tensors.packing import Packing


class LSTMEncoder(Encoder):
    """A one-way LSTM of any depth. Its last state is `LastPooling(..., bidirectional=False)`.

    Args:
        input_dim: dimensions of a token vector.
        hidden_dim: dimensions of a state. Default: 300.
        layers: number of layers. Default: 1.

    Raises:
        InputError: a size is less than 1.

    Example:
        >>> states, gates = LSTMEncoder(300)(vectors, mask, gates=True)   # (batch, time, 300)
    """

    has_gates = True

    def __init__(self, input_dim: int, hidden_dim: int = 300, layers: int = 1) -> None:
        require_positive(input_dim=input_dim, hidden_dim=hidden_dim)
        require_layers(layers)
        super().__init__(input_dim, output_dim=hidden_dim)
        dims = [input_dim] + [hidden_dim] * (layers - 1)
        self.layers = nn.ModuleList(LSTMDirection(dim, hidden_dim) for dim in dims)

    def encode_rows(
        self, rows: Tensor, packing: Packing, gates: bool
    ) -> tuple[Tensor, Tensor | None]:
        inputs = states = rows
        for layer in self.layers:
            inputs, states = states, layer(states, packing.sizes)  # (rows, hidden)
        if not gates:
            return states, None
        top = cast(LSTMDirection, self.layers[-1])
        return states, top.gates(inputs, states, packing.previous())


class GRUEncoder(Encoder):
    """A one-way GRU of any depth (PyTorch's, on packed rows).

    Args:
        input_dim: dimensions of a token vector.
        hidden_dim: dimensions of a state. Default: 300.
        layers: number of layers. Default: 1.

    Raises:
        InputError: a size is less than 1.

    Example:
        >>> states, _ = GRUEncoder(300)(vectors, mask)   # (batch, time, 300)
    """

    def __init__(self, input_dim: int, hidden_dim: int = 300, layers: int = 1) -> None:
        require_positive(input_dim=input_dim, hidden_dim=hidden_dim)
        require_layers(layers)
        super().__init__(input_dim, output_dim=hidden_dim)
        self.gru = nn.GRU(input_dim, hidden_dim, num_layers=layers)

    def encode_rows(
        self, rows: Tensor, packing: Packing, gates: bool
    ) -> tuple[Tensor, Tensor | None]:
        if not packing.sizes:
            return rows.new_zeros(0, self.output_dim), None
        packed, _ = self.gru(PackedSequence(rows, torch.tensor(packing.sizes)))
        return packed.data, None  # (rows, hidden)
