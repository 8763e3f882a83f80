"""Every encoder in the form that a graph can contain: padded tensors, no loop over tokens.

The mathematics is the encoders' own; these classes only replace packed rows by aligned tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from genpool.encoder import (
    ENCODERS,
    BagOfWordsEncoder,
    CAFEEncoder,
    CNNEncoder,
    DiSANEncoder,
    Encoder,
    GRUEncoder,
    LSTMEncoder,
    ReSANEncoder,
)
from genpool.encoder.bilstm import BiLSTMStack
from genpool.encoder.cafe import intra_attention
from genpool.encoder.resan import mean_of_others
from genpool.errors import InputError
from genpool.integrations.onnx.traced_recurrent import (
    Aligned,
    StatesAndGates,
    TracedBiLSTM,
    TracedGRU,
    TracedLSTM,
    TracedLSTMDirection,
)
from genpool.pooling.masking import hide_padding, masked_mean


class TracedBagOfWords(nn.Module):
    """The token vectors are the states."""

    def __init__(self, encoder: BagOfWordsEncoder) -> None:
        super().__init__()

    def forward(self, vectors: Tensor, aligned: Aligned, gates: bool) -> StatesAndGates:
        return vectors, None


class TracedCNN(nn.Module):
    """Convolutions over the tokens, with zeros beyond the ends of every sentence."""

    def __init__(self, encoder: CNNEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, vectors: Tensor, aligned: Aligned, gates: bool) -> StatesAndGates:
        return self.encoder.convolve(hide_padding(vectors, aligned.mask)), None


class TracedDiSAN(nn.Module):
    """Directional self-attention in one block: a graph cannot choose blocks by their size."""

    def __init__(self, encoder: DiSANEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, vectors: Tensor, aligned: Aligned, gates: bool) -> StatesAndGates:
        tokens = hide_padding(vectors, aligned.mask)  # (batch, time, input_dim)
        return self.encoder.attend_both_ways(tokens, aligned.mask, blockwise=False), None


class TracedCAFE(nn.Module):
    """Highway layers, intra-attention and its features, and the LSTM as an operator."""

    def __init__(self, encoder: CAFEEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.lstm = TracedLSTMDirection(encoder.lstm)

    def forward(self, vectors: Tensor, aligned: Aligned, gates: bool) -> StatesAndGates:
        tokens = hide_padding(vectors, aligned.mask)  # (batch, time, input_dim)
        values, keys = self.encoder.transformed(tokens)  # 2 x (batch, time, hidden)
        partners = intra_attention(values, keys, aligned.mask)  # (batch, time, hidden)
        return self.lstm(self.encoder.with_features(values, partners), aligned), None


class TracedReSAN(nn.Module):
    """Reinforced self-attention: words that were not chosen are masked instead of left out."""

    def __init__(self, encoder: ReSANEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, vectors: Tensor, aligned: Aligned, gates: bool) -> StatesAndGates:
        mask = aligned.mask
        tokens = hide_padding(vectors, mask)  # (batch, time, input_dim)
        mean = masked_mean(tokens, mask).unsqueeze(1).expand_as(tokens)
        chosen = self.encoder.log_odds(tokens, mean) >= 0  # (batch, time, 2)
        count = mask.sum(dim=1, keepdim=True)  # (batch, 1)
        halves = []
        for part in (self.encoder.forwards, self.encoder.backwards):
            hidden = hide_padding(part.hidden(tokens), mask)  # (batch, time, hidden)
            seen = part.context(hidden, mask & chosen[:, :, 1], blockwise=False)
            others = mean_of_others(hidden, masked_mean(hidden, mask).unsqueeze(1), count)
            halves.append(part.fuse(hidden, torch.where(chosen[:, :, :1], seen, others)))
        return torch.cat(halves, dim=2), None  # (batch, time, 2 hidden)


#: the traced form of an encoder, by its class or a base class
TRACED_ENCODERS: dict[type[Encoder], Callable[[Any], nn.Module]] = {
    BiLSTMStack: TracedBiLSTM,
    LSTMEncoder: TracedLSTM,
    GRUEncoder: TracedGRU,
    CNNEncoder: TracedCNN,
    DiSANEncoder: TracedDiSAN,
    BagOfWordsEncoder: TracedBagOfWords,
    CAFEEncoder: TracedCAFE,
    ReSANEncoder: TracedReSAN,
}


def traced_encoder(encoder: Encoder) -> nn.Module:
    """Returns the traced form: a module (vectors, aligned, gates) -> states and gates."""
    for cls in type(encoder).__mro__:
        if cls in TRACED_ENCODERS:
            return TRACED_ENCODERS[cls](encoder)
    known = [name for name, cls in ENCODERS.items() if issubclass(cls, tuple(TRACED_ENCODERS))]
    raise InputError(
        f"the encoder {type(encoder).__name__} has no form for an ONNX graph. Encoders that have "
        f"one: {', '.join(known)}."
    )
