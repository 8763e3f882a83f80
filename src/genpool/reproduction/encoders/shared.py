"""What the encoders share: their base class, first weights, and the node of a binary TreeLSTM.

c = f_l * c_l + f_r * c_r + i * g
h = o * tanh(c)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.encoder.base import Encoder
from genpool.encoder.lstm import LSTMDirection, Weights, lstm_plain
from genpool.tensors.packing import Packing


class PackedEncoder(Encoder):
    """An encoder without input gates."""

    def encode_rows(
        self, rows: Tensor, packing: Packing, gates: bool
    ) -> tuple[Tensor, Tensor | None]:
        if not packing.sizes:
            return rows.new_zeros(0, self.output_dim), None
        return self.states(rows, packing), None

    def states(self, rows: Tensor, packing: Packing) -> Tensor:
        """Returns states (rows, output_dim) of token vectors (rows, input_dim), at least one."""
        raise NotImplementedError


def width_layer(input_dim: int, hidden_dim: int) -> nn.Module:
    """Returns the map of token vectors to another width: a matrix without a bias, where needed."""
    same = input_dim == hidden_dim
    return nn.Identity() if same else nn.Linear(input_dim, hidden_dim, bias=False)


def join_nodes(composition: nn.Linear, left: Tensor, right: Tensor, *inputs: Tensor) -> Tensor:
    """Returns nodes [h ; c] (n, 2 hidden) above left and right ones, which read inputs (n, dim)."""
    # In the type of the nodes, which may be wider than that of the parameters.
    h_left, c_left = left.chunk(2, dim=1)
    h_right, c_right = right.chunk(2, dim=1)
    weight, bias = composition.weight.to(left), composition.bias.to(left)
    gates = functional.linear(torch.cat([h_left, h_right, *inputs], dim=1), weight, bias)
    hidden = c_left.shape[1]
    i, f_left, f_right, o = gates[:, : 4 * hidden].sigmoid().chunk(4, dim=1)
    c = f_left * c_left + f_right * c_right + i * gates[:, 4 * hidden :].tanh()  # (n, hidden)
    return torch.cat([o * c.tanh(), c], dim=1)


def composition_layer(input_dim: int, hidden_dim: int) -> nn.Linear:
    """Returns the layer of the gates i, f_l, f_r, o and g: Xavier weights, forget biases 1."""
    layer = nn.Linear(input_dim, 5 * hidden_dim)
    initialize_parts(layer, 5)
    with torch.no_grad():
        layer.bias[hidden_dim : 3 * hidden_dim] = 1
    return layer


def initialize_parts(layer: nn.Linear, parts: int = 1) -> None:
    """Sets Xavier weights for each of several layers that are stacked in one; biases are 0."""
    with torch.no_grad():
        for part in layer.weight.chunk(parts):
            nn.init.xavier_uniform_(part)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)


def lstm_leaves(direction: LSTMDirection, rows: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Returns the states and cells [h ; c] (rows, 2 hidden) of packed inputs (rows, input_dim)."""
    # In the plain form, because the fused one does not return cells, and in the wider type.
    dtype = torch.promote_types(rows.dtype, direction.w.dtype)
    weights = Weights(*(weight.to(dtype) for weight in direction.weights))
    return torch.cat(lstm_plain(rows.to(dtype), sizes, weights, direction.reverse), dim=1)
