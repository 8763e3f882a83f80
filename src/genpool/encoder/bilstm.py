"""Stacks of bidirectional LSTM layers, which differ only in the input of each layer.

e are the token vectors, h^l the states [forward ; backward] of layer l:

    BiLSTMEncoder            x^l = h^{l-1}
    StackedBiLSTMEncoder     x^l = [e ; h^{l-1}]              the paper's, in two forms
    ShortcutStackedEncoder   x^l = [e ; h^1 ; ... ; h^{l-1}]  Nie & Bansal 2017
    ResidualStackedEncoder   x^l = [e ; h^1 + ... + h^{l-1}]  Nie & Bansal 2017
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn

from genpool.encoder.base import Encoder, require_layers
from genpool.encoder.lstm import LSTMDirection, bilstm
from genpool.errors import InputError, unknown_name
from genpool.tensors.checks import require_positive
from genpool.tensors.packing import Packing

#: rows for the forward and for the backward direction, 2 x (rows, dim)
DirectionPair = tuple[Tensor, Tensor]


class BiLSTMLayer(nn.Module):
    """A forward and a backward direction, each with its own input rows."""

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.forwards = LSTMDirection(input_dim, hidden_dim)
        self.backwards = LSTMDirection(input_dim, hidden_dim, reverse=True)

    def forward(self, rows: DirectionPair, sizes: tuple[int, ...]) -> DirectionPair:
        """Returns the forward and the backward states, 2 x (rows, hidden)."""
        return bilstm(rows, sizes, self.forwards.weights, self.backwards.weights)

    def gates(self, rows: DirectionPair, states: DirectionPair, packing: Packing) -> Tensor:
        """Returns the input gates [forward ; backward] of this layer's states, (rows, 2 hidden)."""
        forward_gates = self.forwards.gates(rows[0], states[0], packing.previous())
        backward_gates = self.backwards.gates(rows[1], states[1], packing.previous(reverse=True))
        return torch.cat([forward_gates, backward_gates], dim=1)


class BiLSTMStack(Encoder):
    """Runs the layers; a subclass defines the input of each layer in `layer_rows`."""

    bidirectional = True
    has_gates = True

    def __init__(self, input_dim: int, layer_dims: Sequence[tuple[int, int]]) -> None:
        """layer_dims: input and hidden dimensions of every layer."""
        super().__init__(input_dim, output_dim=2 * layer_dims[-1][1])
        self.layers = nn.ModuleList(BiLSTMLayer(inputs, hidden) for inputs, hidden in layer_dims)

    def layer_rows(self, embedded: Tensor, below: list[DirectionPair]) -> DirectionPair:
        """Returns the input of layer len(below) + 1, from the token vectors and all states below.

        embedded (rows, input_dim); below: the states of every layer below, from the lowest up.
        """
        raise NotImplementedError

    def word_columns(self) -> list[int]:
        """Returns how many leading columns of each layer's input are the token vectors."""
        return [self.input_dim] * len(self.layers)

    def encode_rows(
        self, rows: Tensor, packing: Packing, gates: bool
    ) -> tuple[Tensor, Tensor | None]:
        below: list[DirectionPair] = []
        inputs = (rows, rows)
        for layer in self.layers:
            inputs = self.layer_rows(rows, below) if below else (rows, rows)
            below.append(layer(inputs, packing.sizes))
        states = torch.cat(below[-1], dim=1)  # (rows, 2 hidden): Eq. 3
        if not gates:
            return states, None
        return states, cast(BiLSTMLayer, self.layers[-1]).gates(inputs, below[-1], packing)


class BiLSTMEncoder(BiLSTMStack):
    """A plain BiLSTM: layer l reads h^{l-1}. One layer of 2048 with max pooling is InferSent.

    Args:
        input_dim: dimensions of a token vector.
        hidden_dim: dimensions of each direction. Default: 300.
        layers: number of layers. Default: 1.

    Raises:
        InputError: a size is less than 1.

    Example:
        >>> states, _ = BiLSTMEncoder(300, hidden_dim=2048)(vectors, mask)   # (batch, time, 4096)
    """

    def __init__(self, input_dim: int, hidden_dim: int = 300, layers: int = 1) -> None:
        require_positive(input_dim=input_dim, hidden_dim=hidden_dim)
        require_layers(layers)
        upper = [(2 * hidden_dim, hidden_dim)] * (layers - 1)
        super().__init__(input_dim, [(input_dim, hidden_dim), *upper])

    def word_columns(self) -> list[int]:
        return [self.input_dim] + [0] * (len(self.layers) - 1)

    def layer_rows(self, embedded: Tensor, below: list[DirectionPair]) -> DirectionPair:
        states = torch.cat(below[-1], dim=1)  # (rows, 2 hidden)
        return states, states


class StackedBiLSTMEncoder(BiLSTMStack):
    """The paper's encoder: a stacked BiLSTM with shortcuts to the token vectors (Eq. 1-3).

    Layer 1 reads the token vectors e; every further layer reads e and the states of the layer
    below. Token states are the top layer's, both directions concatenated.

    Args:
        input_dim: dimensions of a token vector.
        hidden_dim: dimensions of each direction. Default: 300.
        layers: number of layers. Default: 3.
        shortcut: "direction", as in Eq. 1-2: each direction reads [e ; its own direction's states];
            "both", as in the authors' released program: [e ; both directions' states].
            Default: "direction".

    Raises:
        InputError: a size is less than 1, or shortcut is unknown.

    Example:
        >>> states, _ = StackedBiLSTMEncoder(300)(vectors, mask)   # (batch, time, 2 * 300)
    """

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int = 300,
        layers: int = 3,
        shortcut: Literal["direction", "both"] = "direction",
    ) -> None:
        require_positive(input_dim=input_dim, hidden_dim=hidden_dim)
        require_layers(layers)
        if shortcut not in ("direction", "both"):
            raise InputError(unknown_name("shortcut", shortcut, ("direction", "both")))
        width = input_dim + (hidden_dim if shortcut == "direction" else 2 * hidden_dim)
        super().__init__(
            input_dim, [(input_dim, hidden_dim)] + [(width, hidden_dim)] * (layers - 1)
        )
        self.shortcut = shortcut

    def layer_rows(self, embedded: Tensor, below: list[DirectionPair]) -> DirectionPair:
        forwards, backwards = below[-1]  # 2 x (rows, hidden)
        if self.shortcut == "direction":
            return torch.cat([embedded, forwards], dim=1), torch.cat([embedded, backwards], dim=1)
        rows = torch.cat([embedded, forwards, backwards], dim=1)  # (rows, input_dim + 2 hidden)
        return rows, rows


class ShortcutStackedEncoder(BiLSTMStack):
    """The shortcut-stacked encoder (Nie & Bansal 2017): each layer reads e and all layers below.

    Args:
        input_dim: dimensions of a token vector.
        hidden_dims: dimensions of each direction, layer by layer. Default: (512, 1024, 2048).

    Raises:
        InputError: a size is less than 1, or there are no layers.

    Example:
        >>> states, _ = ShortcutStackedEncoder(300)(vectors, mask)   # (batch, time, 2 * 2048)
    """

    def __init__(self, input_dim: int, hidden_dims: Sequence[int] = (512, 1024, 2048)) -> None:
        require_layers(len(hidden_dims))
        require_positive(hidden_dim=min(hidden_dims))
        widths = [input_dim + 2 * sum(hidden_dims[:layer]) for layer in range(len(hidden_dims))]
        super().__init__(input_dim, list(zip(widths, hidden_dims, strict=True)))

    def layer_rows(self, embedded: Tensor, below: list[DirectionPair]) -> DirectionPair:
        rows = torch.cat([embedded, *(half for states in below for half in states)], dim=1)
        return rows, rows


class ResidualStackedEncoder(BiLSTMStack):
    """The residual-stacked encoder (Nie & Bansal 2017): e and the sum of all layers below.

    Args:
        input_dim: dimensions of a token vector.
        hidden_dim: dimensions of each direction. Default: 600.
        layers: number of layers. Default: 3.

    Raises:
        InputError: a size is less than 1.

    Example:
        >>> states, _ = ResidualStackedEncoder(300)(vectors, mask)   # (batch, time, 2 * 600)
    """

    def __init__(self, input_dim: int, hidden_dim: int = 600, layers: int = 3) -> None:
        require_positive(input_dim=input_dim, hidden_dim=hidden_dim)
        require_layers(layers)
        width = input_dim + 2 * hidden_dim
        super().__init__(
            input_dim, [(input_dim, hidden_dim)] + [(width, hidden_dim)] * (layers - 1)
        )

    def layer_rows(self, embedded: Tensor, below: list[DirectionPair]) -> DirectionPair:
        total = sum((torch.cat(states, dim=1) for states in below[1:]), torch.cat(below[0], dim=1))
        rows = torch.cat([embedded, total], dim=1)  # (rows, input_dim + 2 hidden)
        return rows, rows
