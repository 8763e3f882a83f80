"""Rows that are written once and read many times, in any order, by the steps of a loop.

A step of a stack machine reads rows that several earlier steps wrote. Autograd's own indexing would
pay for the complete memory at every step of the backward pass; here a step pays for its rows alone.
The memory is passed from call to call, and its gradient flows back through the same chain in place:

    memory = new_memory(count, like)             # zeros
    memory = write_rows(memory, rows, start)
    memory, rows = read_rows(memory, index)      # never the old `memory` again
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


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
