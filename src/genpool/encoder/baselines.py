"""The encoders that the stacked BiLSTM is compared with, from a bag of words to other stacks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from genpool.encoder.base import Encoder, StatesAndGates, require_layers
from genpool.encoder.lstm import BiLSTMStack, DirectionPair, LSTMDirection
from genpool.tensors.modules import require_positive
from genpool.tensors.packing import Packing


class BagOfWordsEncoder(Encoder):
    """Bag of words, without parameters: the token vectors are the states; with mean pooling, CBOW.

    Example:
        >>> states, _ = BagOfWordsEncoder(300)(vectors, mask)   # (batch, time, 300), both
    """

    def __init__(self, input_dim: int) -> None:
        super().__init__(input_dim, output_dim=input_dim)

    def encode_rows(self, rows: Tensor, packing: Packing, gates: bool) -> StatesAndGates:
        return rows, None

    def padded_states(self, tokens: Tensor, mask: Tensor, lstm: object) -> Tensor:
        return tokens


class CNNEncoder(Encoder):
    """Convolutions over neighbouring tokens (Kim 2014): ReLU(conv + b) of several widths.

    The feature maps of all widths are concatenated, one state per token; beyond the ends of a
    sentence the filters see zeros.

    Args:
        input_dim: dimensions of a token vector.
        maps: feature maps per width.
        widths: number of neighbouring tokens that each filter sees. A filter of even width sees one
            more token to the right than to the left.

    Example:
        >>> states, _ = CNNEncoder(300)(vectors, mask)   # (batch, time, 3 * 100)
    """

    def __init__(self, input_dim: int, maps: int = 100, widths: Sequence[int] = (3, 4, 5)) -> None:
        require_positive(input_dim=input_dim, maps=maps)
        require_positive(number_of_widths=len(widths), widths=min(widths, default=1))
        super().__init__(input_dim, output_dim=maps * len(widths))
        self.widths = tuple(widths)
        self.filters = nn.ModuleList(nn.Conv1d(input_dim, maps, width) for width in widths)

    def padded_states(self, tokens: Tensor, mask: Tensor, lstm: object = None) -> Tensor:
        channels = tokens.mT  # (batch, input_dim, time)
        features = []
        for width, convolution in zip(self.widths, self.filters, strict=True):
            padded = functional.pad(channels, ((width - 1) // 2, width // 2))
            features.append(convolution(padded).relu())  # (batch, maps, time)
        return torch.cat(features, dim=1).mT  # (batch, time, output_dim)

    def encode_rows(self, rows: Tensor, packing: Packing, gates: bool) -> StatesAndGates:
        if not packing.sizes:
            return rows.new_zeros(0, self.output_dim), None
        aligned = packing.aligned()  # every sentence starts at 0 and is followed by zeros
        return aligned.pack(self.padded_states(aligned.unpack(rows), aligned.mask())), None


class GRUEncoder(Encoder):
    """A one-way GRU of any depth (PyTorch's, on packed rows).

    Args:
        input_dim: dimensions of a token vector.
        hidden_dim: dimensions of a state.
        layers: number of layers.

    Example:
        >>> states, _ = GRUEncoder(300)(vectors, mask)   # (batch, time, 300)
    """

    def __init__(self, input_dim: int, hidden_dim: int = 300, layers: int = 1) -> None:
        require_layers(layers, input_dim=input_dim, hidden_dim=hidden_dim)
        super().__init__(input_dim, output_dim=hidden_dim)
        self.gru = nn.GRU(input_dim, hidden_dim, num_layers=layers)

    def encode_rows(self, rows: Tensor, packing: Packing, gates: bool) -> StatesAndGates:
        if not packing.sizes:
            return rows.new_zeros(0, self.output_dim), None
        packed, _ = self.gru(PackedSequence(rows, torch.tensor(packing.sizes)))
        return packed.data, None  # (rows, hidden)


class LSTMEncoder(Encoder):
    """A one-way LSTM of any depth. Its last state is `LastPooling(..., bidirectional=False)`.

    Args:
        input_dim: dimensions of a token vector.
        hidden_dim: dimensions of a state.
        layers: number of layers.

    Example:
        >>> states, gates = LSTMEncoder(300)(vectors, mask, gates=True)   # (batch, time, 300)
    """

    has_gates = True

    def __init__(self, input_dim: int, hidden_dim: int = 300, layers: int = 1) -> None:
        require_layers(layers, input_dim=input_dim, hidden_dim=hidden_dim)
        super().__init__(input_dim, output_dim=hidden_dim)
        dims = [input_dim] + [hidden_dim] * (layers - 1)
        self.layers = nn.ModuleList(LSTMDirection(dim, hidden_dim) for dim in dims)

    def encode_rows(self, rows: Tensor, packing: Packing, gates: bool) -> StatesAndGates:
        inputs = states = rows
        for layer in self.layers:
            inputs, states = states, layer(states, packing.sizes)  # (rows, hidden)
        top = cast(LSTMDirection, self.layers[-1])
        return states, top.gates(inputs, states, packing.sizes) if gates else None


class ShortcutStackedEncoder(BiLSTMStack):
    """The shortcut-stacked encoder (Nie & Bansal 2017): each layer reads e and all layers below.

    Args:
        input_dim: dimensions of a token vector.
        hidden_dims: dimensions of each direction, layer by layer.

    Example:
        >>> states, _ = ShortcutStackedEncoder(300)(vectors, mask)   # (batch, time, 2 * 2048)
    """

    def __init__(self, input_dim: int, hidden_dims: Sequence[int] = (512, 1024, 2048)) -> None:
        require_layers(
            len(hidden_dims), input_dim=input_dim, hidden_dim=min(hidden_dims, default=1)
        )
        super().__init__(input_dim, hidden_dims)

    def layer_rows(self, embedded: Tensor, below: list[DirectionPair]) -> DirectionPair:
        rows = torch.cat([embedded, *(half for states in below for half in states)], dim=1)
        return rows, rows


class ResidualStackedEncoder(BiLSTMStack):
    """The residual-stacked encoder (Nie & Bansal 2017): e and the sum of all layers below.

    Args:
        input_dim: dimensions of a token vector.
        hidden_dim: dimensions of each direction.
        layers: number of layers.

    Example:
        >>> states, _ = ResidualStackedEncoder(300)(vectors, mask)   # (batch, time, 2 * 600)
    """

    def __init__(self, input_dim: int, hidden_dim: int = 600, layers: int = 3) -> None:
        require_layers(layers, input_dim=input_dim, hidden_dim=hidden_dim)
        super().__init__(input_dim, [hidden_dim] * layers)

    def layer_rows(self, embedded: Tensor, below: list[DirectionPair]) -> DirectionPair:
        total = reduce(torch.add, [torch.cat(states, dim=1) for states in below])
        rows = torch.cat([embedded, total], dim=1)  # (rows, input_dim + 2 hidden)
        return rows, rows
