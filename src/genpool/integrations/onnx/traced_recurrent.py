"""Recurrent encoders as ONNX's operators LSTM and GRU, which take the length of each sentence.

PyTorch's exporter cannot trace a packed sequence, and turns a padded one into a loop over its
tokens; so these layers are written to the graph as operators. They are for tracing only: called
outside an export they return zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.encoder import GRUEncoder, LSTMEncoder
from genpool.encoder.bilstm import BiLSTMLayer, BiLSTMStack, DirectionPair
from genpool.encoder.lstm import LSTMDirection, input_gates


def left_aligned(mask: Tensor) -> Tensor:
    """Returns (batch, time): the positions of the real tokens in order, then those of padding."""
    time = mask.shape[1]
    position = torch.arange(time, device=mask.device)  # (time,)
    return torch.where(mask, position, position + time).argsort(dim=1)


@dataclass(frozen=True)
class Aligned:
    """Where the real tokens are once every sentence starts at 0.

    Attributes:
        mask: (batch, time), True at real tokens.
        lengths: (batch,), tokens that a recurrent operator reads, as the int32 of ONNX.
    """

    mask: Tensor
    lengths: Tensor

    @classmethod
    def from_mask(cls, mask: Tensor) -> Aligned:
        """Returns the alignment of a mask (batch, time) with padding anywhere."""
        lengths = mask.sum(dim=1, keepdim=True)  # (batch, 1)
        aligned = torch.arange(mask.shape[1], device=mask.device) < lengths  # (batch, time)
        # Not every runtime accepts a length of 0; one token of padding is hidden by the pooling.
        return cls(aligned, lengths.squeeze(1).clamp(min=1).to(torch.int32))


#: states (batch, time, output_dim), and the input gates of the top layer where they are needed
StatesAndGates = tuple[Tensor, Tensor | None]


class OnnxRecurrentLayer(nn.Module):
    """One direction of one layer as an ONNX operator, with its weights in ONNX's order."""

    def __init__(
        self, operator: str, weights: Sequence[Tensor], reverse: bool = False, **attributes: Any
    ) -> None:
        """weights: input (gates, input_dim), recurrent (gates, hidden), both biases (2 gates,)."""
        super().__init__()
        self.operator, self.reverse, self.hidden_dim = operator, reverse, weights[1].shape[1]
        self.attributes = {
            "hidden_size": self.hidden_dim,
            "direction": "reverse" if reverse else "forward",
            **attributes,
        }
        # The first dimension of ONNX's weights is the direction; each operator here has one.
        by_direction = [weight.detach().unsqueeze(0).contiguous() for weight in weights]
        self.weights = nn.ParameterList(
            nn.Parameter(weight, requires_grad=False) for weight in by_direction
        )

    def forward(self, inputs: Tensor, aligned: Aligned) -> Tensor:
        """Returns (batch, time, hidden) for (batch, time, input_dim), zeros after each sentence."""
        batch, time, _ = inputs.shape
        (states,) = torch.onnx.ops.symbolic_multi_out(
            self.operator,
            (inputs.transpose(0, 1), *self.weights, aligned.lengths),
            self.attributes,
            dtypes=(inputs.dtype,),
            shapes=((time, 1, batch, self.hidden_dim),),
        )
        return states.squeeze(1).transpose(0, 1)


class TracedLSTMDirection(OnnxRecurrentLayer):
    """One direction of one LSTM layer."""

    def __init__(self, layer: LSTMDirection) -> None:
        def onnx_gate_order(weight: Tensor) -> Tensor:
            i, f, o, g = weight.detach().chunk(4)
            return torch.cat([i, o, f, g])

        bias = onnx_gate_order(layer.b)
        weights = (
            onnx_gate_order(layer.w),
            onnx_gate_order(layer.u),
            torch.cat([bias, torch.zeros_like(bias)]),
        )
        super().__init__("LSTM", weights, layer.reverse)

    def gates(self, inputs: Tensor, states: Tensor) -> Tensor:
        """Returns the input gates (batch, time, hidden) that led to this direction's states."""
        # h_{t-1}, or h_{t+1} in reverse: after the end of a sentence the states are zeros.
        shifted = states[:, 1:] if self.reverse else states[:, :-1]
        previous = functional.pad(shifted, (0, 0, 0, 1) if self.reverse else (0, 0, 1, 0))
        w, u, b = (weight[0] for weight in self.weights)
        return input_gates(inputs, previous, w, u, b)


class TracedBiLSTM(nn.Module):
    """Any stack of BiLSTM layers; the encoder itself computes the input of each layer."""

    def __init__(self, encoder: BiLSTMStack) -> None:
        super().__init__()
        self.encoder = encoder
        layers = cast("list[BiLSTMLayer]", list(encoder.layers))
        self.forwards = nn.ModuleList(TracedLSTMDirection(layer.forwards) for layer in layers)
        self.backwards = nn.ModuleList(TracedLSTMDirection(layer.backwards) for layer in layers)

    def forward(self, vectors: Tensor, aligned: Aligned, gates: bool) -> StatesAndGates:
        batch, time, _ = vectors.shape
        rows = vectors.flatten(0, 1)  # (batch * time, embedding)
        below: list[DirectionPair] = []
        for forwards, backwards in zip(self.forwards, self.backwards, strict=True):
            flat = self.encoder.layer_rows(rows, below) if below else (rows, rows)
            inputs = [side.view(batch, time, side.shape[1]) for side in flat]
            halves = forwards(inputs[0], aligned), backwards(inputs[1], aligned)
            below.append((halves[0].flatten(0, 1), halves[1].flatten(0, 1)))
        states = torch.cat(halves, dim=2)  # (batch, time, 2 hidden)
        if not gates:
            return states, None
        top_gates = [
            cast(TracedLSTMDirection, direction).gates(side, half)
            for direction, side, half in zip((forwards, backwards), inputs, halves, strict=True)
        ]
        return states, torch.cat(top_gates, dim=2)


class TracedLSTM(nn.Module):
    """A one-way LSTM of any depth."""

    def __init__(self, encoder: LSTMEncoder) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            TracedLSTMDirection(cast(LSTMDirection, layer)) for layer in encoder.layers
        )

    def forward(self, vectors: Tensor, aligned: Aligned, gates: bool) -> StatesAndGates:
        inputs = states = vectors
        for layer in self.layers:
            inputs, states = states, layer(states, aligned)
        top = cast(TracedLSTMDirection, self.layers[-1])
        return states, top.gates(inputs, states) if gates else None


class TracedGRU(nn.Module):
    """A one-way GRU of any depth."""

    def __init__(self, encoder: GRUEncoder) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            _gru_layer(encoder.gru, layer) for layer in range(encoder.gru.num_layers)
        )

    def forward(self, vectors: Tensor, aligned: Aligned, gates: bool) -> StatesAndGates:
        states = vectors
        for layer in self.layers:
            states = layer(states, aligned)
        return states, None


def _gru_layer(gru: nn.GRU, layer: int) -> OnnxRecurrentLayer:
    def onnx_gate_order(name: str) -> Tensor:
        reset, update, new = getattr(gru, f"{name}_l{layer}").detach().chunk(3)
        return torch.cat([update, reset, new])

    w, u = onnx_gate_order("weight_ih"), onnx_gate_order("weight_hh")
    biases = torch.cat([onnx_gate_order("bias_ih"), onnx_gate_order("bias_hh")])
    # PyTorch multiplies by the recurrent matrix before it applies the reset gate.
    return OnnxRecurrentLayer("GRU", (w, u, biases), linear_before_reset=1)
