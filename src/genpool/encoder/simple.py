"""The simple encoders: bag of words, convolutions, and one-way recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from genpool.encoder.base import Encoder, require_layers
from genpool.encoder.lstm import LSTMDirection
from genpool.tensors.checks import require_positive
from genpool.tensors.packing import Packing


class BagOfWordsEncoder(Encoder):
    """Bag of words: the token vectors are the states. With mean pooling this is CBOW.

    It has no parameters.

    Args:
        input_dim: dimensions of a token vector, and of a state.

    Raises:
        InputError: input_dim is less than 1.

    Example:
        >>> states, _ = BagOfWordsEncoder(300)(vectors, mask)   # (batch, time, 300), both
    """

    def __init__(self, input_dim: int) -> None:
        super().__init__(input_dim, output_dim=input_dim)

    def encode_rows(
        self, rows: Tensor, packing: Packing, gates: bool
    ) -> tuple[Tensor, Tensor | None]:
        return rows, None

    def padded_states(self, tokens: Tensor, mask: Tensor, lstm: object) -> Tensor:
        return tokens


class CNNEncoder(Encoder):
    """Convolutions over neighbouring tokens (Kim 2014): ReLU(conv + b) of several widths.

    The feature maps of all widths are concatenated, one state per token; beyond the ends of a
    sentence the filters see zeros.

    Args:
        input_dim: dimensions of a token vector.
        maps: feature maps per width. Default: 100.
        widths: number of neighbouring tokens that each filter sees. A filter of even width sees one
            more token to the right than to the left. Default: (3, 4, 5).

    Raises:
        InputError: a size is less than 1, or there are no widths.

    Example:
        >>> states, _ = CNNEncoder(300)(vectors, mask)   # (batch, time, 3 * 100)
    """

    def __init__(self, input_dim: int, maps: int = 100, widths: Sequence[int] = (3, 4, 5)) -> None:
        require_positive(input_dim=input_dim, maps=maps)
        require_positive(number_of_widths=len(widths), widths=min(widths, default=1))
        super().__init__(input_dim, output_dim=maps * len(widths))
        self.widths = tuple(widths)
        self.filters = nn.ModuleList(nn.Conv1d(input_dim, maps, width) for width in widths)

    def convolve(self, tokens: Tensor) -> Tensor:
        """Returns the states (batch, time, output_dim) of tokens (batch, time, input_dim).

        Every sentence starts at 0 and is followed by zeros (`Packing.align`).
        """
        channels = tokens.mT  # (batch, input_dim, time)
        features = []
        for width, convolution in zip(self.widths, self.filters, strict=True):
            padded = functional.pad(channels, ((width - 1) // 2, width // 2))
            features.append(convolution(padded).relu())  # (batch, maps, time)
        return torch.cat(features, dim=1).mT  # (batch, time, output_dim)

    def encode_rows(
        self, rows: Tensor, packing: Packing, gates: bool
    ) -> tuple[Tensor, Tensor | None]:
        if not packing.sizes:
            return rows.new_zeros(0, self.output_dim), None
        states = self.convolve(packing.align(rows)).flatten(0, 1)  # (batch * longest, output_dim)
        return states.index_select(0, packing.aligned_index()), None

    def padded_states(self, tokens: Tensor, mask: Tensor, lstm: object) -> Tensor:
        return self.convolve(tokens)


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
