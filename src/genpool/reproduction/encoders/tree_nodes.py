"""What the encoders that build trees share: the node of a binary TreeLSTM, leaves, and a memory.

    c = f_l * c_l + f_r * c_r + i * g
    h = o * tanh(c)

The memory has rows that are written once and read many times, in any order, by the steps of a loop.
Autograd's own indexing would pay for the complete memory at every step of the backward pass; here a
step pays for its rows alone. The memory is passed from call to call, and its gradient flows back
through the same chain in place:

    memory = new_memory(count, like)             # zeros
    memory = write_rows(memory, rows, start)
    memory, rows = read_rows(memory, index)      # never the old `memory` again
"""

from __future__ import annotations

from typing import Any

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


def new_memory(rows: int, like: Tensor) -> Tensor:
    """Returns an empty memory (rows, dim) for rows of the width and type of `like` (..., dim)."""
    return torch.zeros(rows, like.shape[-1], dtype=like.dtype, device=like.device)


def write_rows(memory: Tensor, rows: Tensor, start: int) -> Tensor:
    """Returns the memory with rows (n, dim) at start, start + 1, ...; nothing was read there."""
    written: Tensor = _WriteRows.apply(memory, rows, start)  # type: ignore[no-untyped-call]
    return written


def read_rows(memory: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the memory, to be used from now on, and its rows (n, dim) at index (n,)."""
    result: tuple[Tensor, Tensor] = _ReadRows.apply(memory, index)  # type: ignore[no-untyped-call]
    return result


class _WriteRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, memory: Tensor, rows: Tensor, start: int) -> Tensor:
        ctx.place = slice(start, start + len(rows))
        ctx.set_materialize_grads(False)
        memory[ctx.place] = rows
        ctx.mark_dirty(memory)
        return memory

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        grad = grads[0]
        if grad is None:  # nothing that was read from here on has a gradient
            return None, None, None
        return grad, grad[ctx.place].clone(), None


class _ReadRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, memory: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(index)
        ctx.shape = memory.shape
        ctx.set_materialize_grads(False)
        rows = memory.index_select(0, index)
        # Not changed, but passed on: otherwise it would be a view, which no later step may write.
        ctx.mark_dirty(memory)
        return memory, rows

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        grad_memory, grad_rows = grads
        if grad_rows is None:
            return grad_memory, None
        if grad_memory is None:
            grad_memory = grad_rows.new_zeros(ctx.shape)
        # In place: the chain is the only owner of this gradient.
        return grad_memory.index_add_(0, ctx.saved_tensors[0], grad_rows), None
