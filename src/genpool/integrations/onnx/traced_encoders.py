"""The encoders in the form that a graph can contain: padded tensors, no loop over tokens.

The mathematics is the encoders' own; these classes only replace packed rows by aligned tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from genpool.encoder import (
    ENCODERS,
    BagOfWordsEncoder,
    CNNEncoder,
    Encoder,
    GRUEncoder,
    LSTMEncoder,
)
from genpool.encoder.bilstm import BiLSTMStack
from genpool.errors import InputError
from genpool.integrations.onnx.traced_recurrent import (
    Aligned,
    StatesAndGates,
    TracedBiLSTM,
    TracedGRU,
    TracedLSTM,
)
from genpool.pooling.masking import hide_padding


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


#: the traced form of an encoder, by its class or a base class
TRACED_ENCODERS: dict[type[Encoder], Callable[[Any], nn.Module]] = {
    BiLSTMStack: TracedBiLSTM,
    LSTMEncoder: TracedLSTM,
    GRUEncoder: TracedGRU,
    CNNEncoder: TracedCNN,
    BagOfWordsEncoder: TracedBagOfWords,
}


def traced_encoder(encoder: Encoder) -> nn.Module:
    """Returns the traced form: a module (vectors, aligned, gates) -> states and gates."""
    traced = encoder.traced()
    if traced is not None:
        return traced
    for cls in type(encoder).__mro__:
        if cls in TRACED_ENCODERS:
            return TRACED_ENCODERS[cls](encoder)
    known = [
        name
        for name, cls in ENCODERS.items()
        if issubclass(cls, tuple(TRACED_ENCODERS)) or cls.traced is not Encoder.traced
    ]
    raise InputError(
        f"the encoder {type(encoder).__name__} has no form for an ONNX graph. Encoders that have "
        f"one: {', '.join(known)}."
    )
