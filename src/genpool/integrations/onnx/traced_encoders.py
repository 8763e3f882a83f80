"""Every encoder in the form that a graph can hold: padded tensors and no loops over tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.encoder import (
    ENCODERS,
    BagOfWordsEncoder,
    CNNEncoder,
    DiSANEncoder,
    Encoder,
    GRUEncoder,
    LSTMEncoder,
)
from genpool.encoder.bilstm import BiLSTMStack
from genpool.encoder.disan import DirectionalAttention, attend
from genpool.errors import InputError
from genpool.integrations.onnx.alignment import Aligned
from genpool.integrations.onnx.recurrent import BiLSTMGraph, GRUGraph, LSTMGraph, StatesAndGates
from genpool.pooling.masking import hide_padding


class BagOfWordsGraph(nn.Module):
    """The token vectors are the states."""

    def __init__(self, encoder: BagOfWordsEncoder) -> None:
        super().__init__()

    def forward(self, vectors: Tensor, aligned: Aligned, gates: bool) -> StatesAndGates:
        return vectors, None


class CNNGraph(nn.Module):
    """Convolutions over the tokens, with zeros beyond the ends of every sentence."""

    def __init__(self, encoder: CNNEncoder) -> None:
        super().__init__()
        self.widths, self.filters = encoder.widths, encoder.filters

    def forward(self, vectors: Tensor, aligned: Aligned, gates: bool) -> StatesAndGates:
        tokens = hide_padding(vectors, aligned.mask).mT  # (batch, input_dim, time)
        found = []
        for width, convolution in zip(self.widths, self.filters, strict=True):
            padded = functional.pad(tokens, ((width - 1) // 2, width // 2))
            found.append(convolution(padded).relu())  # (batch, maps, time)
        return torch.cat(found, dim=1).mT, None


class DiSANGraph(nn.Module):
    """Directional self-attention in one block: a graph cannot choose blocks by their size."""

    def __init__(self, encoder: DiSANEncoder) -> None:
        super().__init__()
        self.directions = nn.ModuleList([encoder.forwards, encoder.backwards])

    def forward(self, vectors: Tensor, aligned: Aligned, gates: bool) -> StatesAndGates:
        tokens = hide_padding(vectors, aligned.mask)
        position = torch.arange(tokens.shape[1], device=tokens.device)  # (time,)
        fused = []
        for each in self.directions:
            part = cast(DirectionalAttention, each)
            own = functional.elu(part.inputs(tokens))  # (batch, time, hidden)
            here = position.unsqueeze(1)  # (time, 1)
            before = position > here if part.reverse else position < here  # (time, time)
            allowed = before & aligned.mask.unsqueeze(1)  # (batch, time, time)
            context = attend(own, part.key(own), part.query(own), allowed)
            gate = torch.sigmoid(part.gate_own(own) + part.gate_seen(context))
            fused.append(gate * own + (1 - gate) * context)
        return torch.cat(fused, dim=2), None


#: the form of an encoder, by its class or a class that it is made from
FORMS: dict[type[Encoder], Callable[[Any], nn.Module]] = {
    BiLSTMStack: BiLSTMGraph,
    LSTMEncoder: LSTMGraph,
    GRUEncoder: GRUGraph,
    CNNEncoder: CNNGraph,
    DiSANEncoder: DiSANGraph,
    BagOfWordsEncoder: BagOfWordsGraph,
}


def graph_encoder(encoder: Encoder) -> nn.Module:
    """The encoder as a graph can hold it: (vectors, aligned, gates) -> states and gates."""
    for kind, form in FORMS.items():
        if isinstance(encoder, kind):
            return form(encoder)
    able = [name for name, each in ENCODERS.items() if issubclass(each, tuple(FORMS))]
    raise InputError(
        f"the encoder {type(encoder).__name__} has no form for an ONNX graph. Encoders that have "
        f"one: {', '.join(able)}."
    )
