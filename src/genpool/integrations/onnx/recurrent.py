"""Recurrent encoders for a graph: ONNX's own operators, which know where each sentence ends.

PyTorch's exporter cannot see a packed sequence, and makes a loop over the tokens of a padded one;
so these layers stand in the graph as the operators LSTM and GRU. They are for tracing alone:
called outside an export they give zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.encoder import GRUEncoder, LSTMEncoder
from genpool.encoder.bilstm import BiLSTMLayer, BiLSTMStack
from genpool.encoder.lstm import LSTMDirection
from genpool.integrations.onnx.alignment import Aligned

#: states (batch, time, output_dim), and the input gates of the top layer where they are wanted
StatesAndGates = tuple[Tensor, Tensor | None]


class Recurrent(nn.Module):
    """One direction of one layer as an ONNX operator, with its weights in ONNX's order."""

    def __init__(
        self, operator: str, weights: Sequence[Tensor], reverse: bool = False, **attributes: Any
    ) -> None:
        """weights: input (gates, input_dim), recurrent (gates, hidden), both biases (2 gates,)"""
        super().__init__()
        self.operator, self.reverse, self.hidden_dim = operator, reverse, weights[1].shape[1]
        self.attributes = {
            "hidden_size": self.hidden_dim,
            "direction": "reverse" if reverse else "forward",
            **attributes,
        }
        # ONNX counts directions first; here each operator has one.
        numbers = [each.detach().unsqueeze(0).contiguous() for each in weights]
        self.weights = nn.ParameterList(nn.Parameter(each, requires_grad=False) for each in numbers)

    def forward(self, inputs: Tensor, aligned: Aligned) -> Tensor:
        """(batch, time, input_dim) -> (batch, time, hidden), zeros behind each sentence"""
        batch, time, _ = inputs.shape
        (states,) = torch.onnx.ops.symbolic_multi_out(
            self.operator,
            (inputs.transpose(0, 1), *self.weights, aligned.lengths),
            self.attributes,
            dtypes=(inputs.dtype,),
            shapes=((time, 1, batch, self.hidden_dim),),
        )
        return states.squeeze(1).transpose(0, 1)


class Direction(Recurrent):
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
        """i_t of every token, from the states that this direction gave: (batch, time, hidden)."""
        # h_{t-1}, or h_{t+1} in reverse: behind the end of a sentence the states are zeros.
        near = states[:, 1:] if self.reverse else states[:, :-1]
        before = functional.pad(near, (0, 0, 0, 1) if self.reverse else (0, 0, 1, 0))
        w, u, b = (each[0, : self.hidden_dim] for each in self.weights)
        return torch.sigmoid(inputs @ w.T + before @ u.T + b)


class BiLSTMGraph(nn.Module):
    """Any stack of BiLSTM layers: the encoder itself says what each layer is given."""

    def __init__(self, encoder: BiLSTMStack) -> None:
        super().__init__()
        self.encoder = encoder
        layers = cast("list[BiLSTMLayer]", list(encoder.layers))
        self.forwards = nn.ModuleList(Direction(each.forwards) for each in layers)
        self.backwards = nn.ModuleList(Direction(each.backwards) for each in layers)

    def forward(self, vectors: Tensor, aligned: Aligned, gates: bool) -> StatesAndGates:
        batch, time, _ = vectors.shape
        rows = vectors.flatten(0, 1)  # (batch * time, embedding)
        below: list[tuple[Tensor, Tensor]] = []
        for onward, back in zip(self.forwards, self.backwards, strict=True):
            flat = self.encoder.layer_rows(rows, below) if below else (rows, rows)
            given = [each.view(batch, time, each.shape[1]) for each in flat]
            halves = onward(given[0], aligned), back(given[1], aligned)
            below.append((halves[0].flatten(0, 1), halves[1].flatten(0, 1)))
        states = torch.cat(halves, dim=2)  # (batch, time, 2 hidden)
        if not gates:
            return states, None
        top = [
            cast(Direction, each).gates(inputs, half)
            for each, inputs, half in zip((onward, back), given, halves, strict=True)
        ]
        return states, torch.cat(top, dim=2)


class LSTMGraph(nn.Module):
    """A one-way LSTM of any depth."""

    def __init__(self, encoder: LSTMEncoder) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Direction(cast(LSTMDirection, each)) for each in encoder.layers)

    def forward(self, vectors: Tensor, aligned: Aligned, gates: bool) -> StatesAndGates:
        inputs = states = vectors
        for layer in self.layers:
            inputs, states = states, layer(states, aligned)
        top = cast(Direction, self.layers[-1])
        return states, top.gates(inputs, states) if gates else None


class GRUGraph(nn.Module):
    """A one-way GRU of any depth."""

    def __init__(self, encoder: GRUEncoder) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            _gru_layer(encoder.gru, number) for number in range(encoder.gru.num_layers)
        )

    def forward(self, vectors: Tensor, aligned: Aligned, gates: bool) -> StatesAndGates:
        states = vectors
        for layer in self.layers:
            states = layer(states, aligned)
        return states, None


def _gru_layer(gru: nn.GRU, number: int) -> Recurrent:
    def onnx_gate_order(name: str) -> Tensor:
        reset, update, new = getattr(gru, f"{name}_l{number}").detach().chunk(3)
        return torch.cat([update, reset, new])

    w, u = onnx_gate_order("weight_ih"), onnx_gate_order("weight_hh")
    biases = torch.cat([onnx_gate_order("bias_ih"), onnx_gate_order("bias_hh")])
    # PyTorch multiplies first and then resets.
    return Recurrent("GRU", (w, u, biases), linear_before_reset=1)
