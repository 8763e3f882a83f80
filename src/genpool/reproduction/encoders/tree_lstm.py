"""The node of a binary TreeLSTM, and leaves from an LSTM, for the encoders that build trees.

c = f_l * c_l + f_r * c_r + i * g
h = o * tanh(c)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from genpool.encoder.lstm import LSTMDirection, steps_of


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

    The equations of `genpool.encoder.lstm`, whose fused form has no cells among its results, in the
    wider one of the types of rows and weights.
    """
    dtype = torch.promote_types(rows.dtype, direction.w.dtype)
    w, u, b = (weight.to(dtype) for weight in direction.weights)
    hidden = direction.hidden_dim
    projected = torch.addmm(b, rows.to(dtype), w.T)  # (rows, 4 hidden)
    h = c = projected.new_zeros(sizes[0] if sizes else 0, hidden)  # (sentences, hidden)
    leaves: list[Tensor] = []
    for start, size in steps_of(sizes, direction.reverse):
        gates = projected[start : start + size] + h[:size] @ u.T  # (size, 4 hidden)
        i, f, o = gates[:, : 3 * hidden].sigmoid().chunk(3, dim=1)
        new_c = f * c[:size] + i * gates[:, 3 * hidden :].tanh()
        new_h = o * new_c.tanh()
        leaves.append(torch.cat([new_h, new_c], dim=1))
        # Sentences that have ended (or, in reverse, have not started) keep their state.
        c, h = torch.cat([new_c, c[size:]]), torch.cat([new_h, h[size:]])
    if not leaves:
        return projected.new_zeros(0, 2 * hidden)
    return torch.cat(leaves[::-1] if direction.reverse else leaves)
