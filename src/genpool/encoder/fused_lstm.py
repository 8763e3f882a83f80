"""LSTM layers as single nodes of the autograd graph.

The backward pass collects the gate gradients of all steps and computes each weight gradient with
one large multiplication at the end; autograd would make one for every step. No step copies a state:
the packed rows of the previous step are read in place.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor

from genpool.tensors.threads import run_both

#: grad * s (1 - s) and grad * (1 - t^2), each in one pass
sigmoid_backward = torch.ops.aten.sigmoid_backward
tanh_backward = torch.ops.aten.tanh_backward


class Weights(NamedTuple):
    """One direction: w (4 hidden, input_dim); u (4 hidden, hidden); b (4 hidden,)."""

    w: Tensor
    u: Tensor
    b: Tensor


class Saved(NamedTuple):
    """Activations of a direction that its backward pass needs, all (rows, ...)."""

    gates: Tensor
    cells: Tensor
    states: Tensor


def run_forward(rows: Tensor, sizes: tuple[int, ...], weights: Weights, reverse: bool) -> Saved:
    """Runs all steps of one direction: rows (rows, input_dim)."""
    projected = torch.addmm(weights.b, rows, weights.w.T)
    return run_steps(projected, sizes, adder(weights.u), reverse)


#: add_product(gates, states): gates += states U^T, in place
AddProduct = Callable[[Tensor, Tensor], object]


def adder(u: Tensor) -> AddProduct:
    """Returns the function that adds states U^T, for u (4 hidden, hidden)."""
    transposed = u.T.contiguous()
    return lambda gates, states: gates.addmm_(states, transposed)


def run_steps(
    gates: Tensor,
    sizes: tuple[int, ...],
    add_product: AddProduct,
    reverse: bool,
    states: Tensor | None = None,
) -> Saved:
    """Runs all steps, from the projected inputs W x + b (rows, 4 hidden), which are overwritten.

    states (rows, hidden): memory to write the states to; None allocates it.
    """
    hidden = gates.shape[1] // 4
    cells = gates.new_empty(len(gates), hidden)
    states = gates.new_empty(len(gates), hidden) if states is None else states
    last = slice(0, 0)  # the rows of the previous step; sentences that start now have none
    for start, size in steps_of(sizes, reverse):
        now = slice(start, start + size)
        shared = min(size, last.stop - last.start)
        last = slice(last.start, last.start + shared)
        add_product(gates[start : start + shared], states[last])
        gates[now, : 3 * hidden].sigmoid_()
        gates[now, 3 * hidden :].tanh_()
        i, f, o, g = gates[now].chunk(4, dim=1)
        torch.mul(i, g, out=cells[now])
        cells[start : start + shared].addcmul_(f[:shared], cells[last])
        torch.mul(o, cells[now].tanh(), out=states[now])
        last = now
    return Saved(gates, cells, states)


def run_backward(
    grad_states: Tensor,
    rows: Tensor,
    sizes: tuple[int, ...],
    weights: Weights,
    saved: Saved,
    reverse: bool,
    needed: tuple[bool, bool, bool, bool],
) -> tuple[Tensor | None, ...]:
    """Returns the gradients of rows, w, u and b; None for those that are not needed."""
    gates, cells, states = saved
    hidden = weights.u.shape[1]
    grad_gates = torch.empty_like(gates)  # (rows, 4 hidden), before the activations
    before = torch.zeros_like(states)  # (rows, hidden): h_{t-1} of each row
    grad_h = states.new_zeros(sizes[0], hidden)
    grad_c = states.new_zeros(sizes[0], hidden)
    steps = steps_of(sizes, reverse)
    for step in range(len(steps) - 1, -1, -1):
        start, size = steps[step]
        now = slice(start, start + size)
        i, f, o, g = gates[now].chunk(4, dim=1)
        d_i, d_f, d_o, d_g = grad_gates[now].chunk(4, dim=1)
        dh = grad_h[:size].add_(grad_states[now])
        tanh_c = cells[now].tanh()
        dc = grad_c[:size].add_(tanh_backward(dh * o, tanh_c))
        torch.mul(dh, tanh_c, out=d_o)
        torch.mul(dc, g, out=d_i)
        tanh_backward.grad_input(torch.mul(dc, i, out=d_g), g, grad_input=d_g)
        if not step or steps[step - 1][1] < size:
            d_f.zero_()
        if step:
            last_start, last_size = steps[step - 1]
            shared = min(size, last_size)
            last = slice(last_start, last_start + shared)
            torch.mul(dc[:shared], cells[last], out=d_f[:shared])
            before[start : start + shared] = states[last]
        # The three sigmoids are adjacent: their derivatives are taken at once.
        sigmoids = grad_gates[now, : 3 * hidden]
        sigmoid_backward.grad_input(sigmoids, gates[now, : 3 * hidden], grad_input=sigmoids)
        if step:
            dc.mul_(f)
            torch.mm(grad_gates[now], weights.u, out=grad_h[:size])
    need_rows, need_w, need_u, need_b = needed
    return (
        grad_gates @ weights.w if need_rows else None,
        grad_gates.T @ rows if need_w else None,
        grad_gates.T @ before if need_u else None,
        grad_gates.sum(dim=0) if need_b else None,
    )


class FusedLSTM(torch.autograd.Function):
    """All steps of one direction as one node of the graph."""

    @staticmethod
    def forward(
        ctx: Any, sizes: tuple[int, ...], reverse: bool, rows: Tensor, *weights: Tensor
    ) -> Tensor:
        saved = run_forward(rows, sizes, Weights(*weights), reverse)
        ctx.save_for_backward(rows, *weights, *saved)
        ctx.sizes, ctx.reverse = sizes, reverse
        return saved.states

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        rows, w, u, b, *saved = ctx.saved_tensors
        needed = ctx.needs_input_grad[2:]
        gradients = run_backward(
            grads[0], rows, ctx.sizes, Weights(w, u, b), Saved(*saved), ctx.reverse, needed
        )
        return (None, None, *gradients)


class FusedBiLSTM(torch.autograd.Function):
    """Both directions as one node, so that they run in parallel, in the backward pass too."""

    @staticmethod
    def forward(ctx: Any, sizes: tuple[int, ...], *tensors: Tensor) -> tuple[Tensor, Tensor]:
        first, second = tensors[:4], tensors[4:]  # rows, w, u and b of each direction
        saved = run_both(
            lambda: run_forward(first[0], sizes, Weights(*first[1:]), False),
            lambda: run_forward(second[0], sizes, Weights(*second[1:]), True),
            first[0].device,
        )
        ctx.save_for_backward(*tensors, *saved[0], *saved[1])
        ctx.sizes = sizes
        return saved[0].states, saved[1].states

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        needed = ctx.needs_input_grad[1:]

        def direction(side: int) -> tuple[Tensor | None, ...]:
            rows, w, u, b = saved[4 * side : 4 * side + 4]
            activations = Saved(*saved[8 + 3 * side : 11 + 3 * side])
            needed_here = needed[4 * side : 4 * side + 4]
            return run_backward(
                grads[side],
                rows,
                ctx.sizes,
                Weights(w, u, b),
                activations,
                bool(side),
                needed_here,
            )

        first, second = run_both(lambda: direction(0), lambda: direction(1), saved[0].device)
        return (None, *first, *second)


def steps_of(sizes: tuple[int, ...], reverse: bool) -> list[tuple[int, int]]:
    """Returns (first row, number of rows) of every step, in the order of computation."""
    steps = list(zip(accumulate((0, *sizes)), sizes, strict=False))  # the last start has no step
    return steps[::-1] if reverse else steps
