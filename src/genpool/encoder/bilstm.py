"""Stacks of bidirectional LSTM layers: they differ only in what each layer is given.

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

from genpool.encoder.base import Encoder, require_positive
from genpool.encoder.lstm import LSTMDirection, bilstm
from genpool.errors import InputError, unknown_name
from genpool.tensors.packing import Packing

#: rows for the forward and for the backward direction, 2 x (rows, dim)
BothWays = tuple[Tensor, Tensor]


class BiLSTMLayer(nn.Module):
    """Two directions, each with rows of its own."""

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.forwards = LSTMDirection(input_dim, hidden_dim)
        self.backwards = LSTMDirection(input_dim, hidden_dim, reverse=True)

    def forward(self, rows: BothWays, sizes: tuple[int, ...]) -> BothWays:
        """-> forward and backward states, 2 x (rows, hidden)"""
        return bilstm(rows, sizes, self.forwards.weights, self.backwards.weights)

    def gates(self, rows: BothWays, states: BothWays, packing: Packing) -> Tensor:
        """Input gates [forward ; backward] of states that this layer gave: (rows, 2 hidden)."""
        onward = self.forwards.gates(rows[0], states[0], packing.previous())
        back = self.backwards.gates(rows[1], states[1], packing.previous(reverse=True))
        return torch.cat([onward, back], dim=1)


class BiLSTMStack(Encoder):
    """Runs the layers; a subclass says in `layer_rows` what each of them is given."""

    bidirectional = True
    has_gates = True

    def __init__(self, input_dim: int, layer_dims: Sequence[tuple[int, int]]) -> None:
        """layer_dims: (input, hidden) of every layer."""
        super().__init__(input_dim, output_dim=2 * layer_dims[-1][1])
        self.layers = nn.ModuleList(BiLSTMLayer(given, hidden) for given, hidden in layer_dims)

    def layer_rows(self, embedded: Tensor, below: list[BothWays]) -> BothWays:
        """The rows of layer len(below) + 1, from the token vectors and all states below."""
        raise NotImplementedError

    def word_columns(self) -> list[int]:
        """How many leading columns of each layer's input are the token vectors."""
        return [self.input_dim] * len(self.layers)

    def encode_rows(
        self, rows: Tensor, packing: Packing, gates: bool
    ) -> tuple[Tensor, Tensor | None]:
        below: list[BothWays] = []
        given = (rows, rows)
        for layer in self.layers:
            given = self.layer_rows(rows, below) if below else (rows, rows)
            below.append(layer(given, packing.sizes))
        states = torch.cat(below[-1], dim=1)  # (rows, 2 hidden): Eq. 3
        if not gates:
            return states, None
        return states, cast(BiLSTMLayer, self.layers[-1]).gates(given, below[-1], packing)


class BiLSTMEncoder(BiLSTMStack):
    """A plain BiLSTM. One layer of 2048 with max pooling is InferSent's encoder."""

    def __init__(self, input_dim: int, hidden_dim: int = 300, layers: int = 1) -> None:
        require_positive(input_dim=input_dim, hidden_dim=hidden_dim, layers=layers)
        later = [(2 * hidden_dim, hidden_dim)] * (layers - 1)
        super().__init__(input_dim, [(input_dim, hidden_dim), *later])

    def word_columns(self) -> list[int]:
        return [self.input_dim] + [0] * (len(self.layers) - 1)

    def layer_rows(self, embedded: Tensor, below: list[BothWays]) -> BothWays:
        states = torch.cat(below[-1], dim=1)  # (rows, 2 hidden)
        return states, states


class StackedBiLSTMEncoder(BiLSTMStack):
    """The paper's encoder: a stacked BiLSTM with shortcuts to the token vectors (Eq. 1-3).

    Args:
        shortcut: "direction", as printed in Eq. 1-2: each direction gets [e ; its own direction's
            states]; "both", as in the authors' released program: [e ; both directions' states].
    """

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int = 300,
        layers: int = 3,
        shortcut: Literal["direction", "both"] = "direction",
    ) -> None:
        require_positive(input_dim=input_dim, hidden_dim=hidden_dim, layers=layers)
        if shortcut not in ("direction", "both"):
            raise InputError(unknown_name("shortcut", shortcut, ("direction", "both")))
        width = input_dim + (hidden_dim if shortcut == "direction" else 2 * hidden_dim)
        super().__init__(
            input_dim, [(input_dim, hidden_dim)] + [(width, hidden_dim)] * (layers - 1)
        )
        self.shortcut = shortcut

    def layer_rows(self, embedded: Tensor, below: list[BothWays]) -> BothWays:
        onward, back = below[-1]
        if self.shortcut == "direction":
            return torch.cat([embedded, onward], dim=1), torch.cat([embedded, back], dim=1)
        rows = torch.cat([embedded, onward, back], dim=1)  # (rows, input_dim + 2 hidden)
        return rows, rows


class ShortcutStackedEncoder(BiLSTMStack):
    """Nie & Bansal's shortcut-stacked encoder: every layer sees e and all layers below."""

    def __init__(self, input_dim: int, hidden_dims: Sequence[int] = (512, 1024, 2048)) -> None:
        require_positive(layers=len(hidden_dims), hidden_dim=min(hidden_dims, default=1))
        widths = [input_dim + 2 * sum(hidden_dims[:number]) for number in range(len(hidden_dims))]
        super().__init__(input_dim, list(zip(widths, hidden_dims, strict=True)))

    def layer_rows(self, embedded: Tensor, below: list[BothWays]) -> BothWays:
        rows = torch.cat([embedded, *(half for states in below for half in states)], dim=1)
        return rows, rows


class ResidualStackedEncoder(BiLSTMStack):
    """Nie & Bansal's residual-stacked encoder: every layer sees e and the sum of those below."""

    def __init__(self, input_dim: int, hidden_dim: int = 600, layers: int = 3) -> None:
        require_positive(input_dim=input_dim, hidden_dim=hidden_dim, layers=layers)
        width = input_dim + 2 * hidden_dim
        super().__init__(
            input_dim, [(input_dim, hidden_dim)] + [(width, hidden_dim)] * (layers - 1)
        )

    def layer_rows(self, embedded: Tensor, below: list[BothWays]) -> BothWays:
        total = sum((torch.cat(states, dim=1) for states in below[1:]), torch.cat(below[0], dim=1))
        rows = torch.cat([embedded, total], dim=1)  # (rows, input_dim + 2 hidden)
        return rows, rows
