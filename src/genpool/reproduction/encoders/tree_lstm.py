"""The node of a binary TreeLSTM, and leaves from an LSTM, for the encoders that build trees.

c = f_l * c_l + f_r * c_r + i * g
h = o * tanh(c)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from genpool.encoder.fused_lstm import Weights
from genpool.encoder.lstm import LSTMDirection, lstm_plain


def join_nodes(gates: Tensor, left_cell: Tensor, right_cell: Tensor) -> tuple[Tensor, Tensor]:
    """Returns h and c (..., hidden) of nodes above two children.

    gates (..., 5 hidden): i, f_l, f_r, o and g before their activations, in this order, so that the
    four sigmoids are adjacent; left_cell and right_cell (..., hidden).
    """
    hidden = left_cell.shape[-1]
    i, f_left, f_right, o = gates[..., : 4 * hidden].sigmoid().chunk(4, dim=-1)
    c = f_left * left_cell + f_right * right_cell + i * gates[..., 4 * hidden :].tanh()
    return o * c.tanh(), c


def composition_layer(input_dim: int, hidden_dim: int) -> nn.Linear:
    """Returns the layer of the five gates: Xavier weights, forget biases 1, other biases 0."""
    layer = nn.Linear(input_dim, 5 * hidden_dim)
    initialize_parts(layer, 5)
    with torch.no_grad():
        layer.bias[hidden_dim : 3 * hidden_dim] = 1
    return layer


def leaf_layer(input_dim: int, hidden_dim: int) -> nn.Linear:
    """Returns the layer of leaves without context, [h ; c] = W x + b: Xavier weights, biases 0."""
    layer = nn.Linear(input_dim, 2 * hidden_dim)
    initialize_parts(layer, 2)
    return layer


def initialize_parts(layer: nn.Linear, parts: int) -> None:
    """Sets Xavier weights for each of several layers that are stacked in one; biases are 0."""
    with torch.no_grad():
        for part in layer.weight.chunk(parts):
            nn.init.xavier_uniform_(part)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)


def lstm_leaves(direction: LSTMDirection, rows: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Returns the states and the cells [h ; c] (rows, 2 hidden) of packed inputs (rows, input_dim).

    In the plain form, because the fused one has no cells among its results, and in the wider one of
    the types of rows and weights.
    """
    dtype = torch.promote_types(rows.dtype, direction.w.dtype)
    weights = Weights(*(weight.to(dtype) for weight in direction.weights))
    return torch.cat(lstm_plain(rows.to(dtype), sizes, weights, direction.reverse), dim=1)
