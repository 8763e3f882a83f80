"""LSTM layers as single nodes of the autograd graph.

The backward pass collects the gate gradients of all steps and forms each weight gradient with one
large multiplication at the end; autograd would make one for every step. No step copies a state:
the packed rows of the step before are where they are.
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
    """What the backward pass needs of a direction's forward pass, all (rows, ...)."""

    gates: Tensor
    cells: Tensor
    states: Tensor


def run_forward(rows: Tensor, sizes: tuple[int, ...], weights: Weights, reverse: bool) -> Saved:
    """All steps of one direction."""
    projected = torch.addmm(weights.b, rows, weights.w.T)
    return run_steps(projected, sizes, adder(weights.u), reverse)


#: add_product(gates, states): gates += states U^T, in place
AddProduct = Callable[[Tensor, Tensor], object]


def adder(u: Tensor) -> AddProduct:
    turned = u.T.contiguous()
    return lambda gates, states: gates.addmm_(states, turned)


def run_steps(
    gates: Tensor,
    sizes: tuple[int, ...],
    add_product: AddProduct,
    reverse: bool,
    states: Tensor | None = None,
) -> Saved:
    """All steps, from the projected inputs W x + b (rows, 4 hidden), which are overwritten.

    states (rows, hidden): where to put them; new memory where none is given.
    """
    hidden = gates.shape[1] // 4
    cells = gates.new_empty(len(gates), hidden)
    states = gates.new_empty(len(gates), hidden) if states is None else states
    last = slice(0, 0)  # the rows of the step before; sentences that begin now have none
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
    """Gradients of rows, w, u and b, those that are needed."""
    gates, cells, states = saved
    hidden = weights.u.shape[1]
    grad_gates = torch.empty_like(gates)  # (rows, 4 hidden), before the activations
    before = torch.zeros_like(states)  # (rows, hidden): h_{t-1} of each row
    grad_h = states.new_zeros(sizes[0], hidden)
    grad_c = states.new_zeros(sizes[0], hidden)
    steps = steps_of(sizes, reverse)
    for number in range(len(steps) - 1, -1, -1):
        start, size = steps[number]
        now = slice(start, start + size)
        i, f, o, g = gates[now].chunk(4, dim=1)
        d_i, d_f, d_o, d_g = grad_gates[now].chunk(4, dim=1)
        dh = grad_h[:size].add_(grad_states[now])
        tanh_c = cells[now].tanh()
        dc = grad_c[:size].add_(tanh_backward(dh * o, tanh_c))
        torch.mul(dh, tanh_c, out=d_o)
        torch.mul(dc, g, out=d_i)
        tanh_backward.grad_input(torch.mul(dc, i, out=d_g), g, grad_input=d_g)
        if not number or steps[number - 1][1] < size:
            d_f.zero_()
        if number:
            last_start, last_size = steps[number - 1]
            shared = min(size, last_size)
            last = slice(last_start, last_start + shared)
            torch.mul(dc[:shared], cells[last], out=d_f[:shared])
            before[start : start + shared] = states[last]
        # The three sigmoids are neighbours: their derivatives are taken at once.
        three = grad_gates[now, : 3 * hidden]
        sigmoid_backward.grad_input(three, gates[now, : 3 * hidden], grad_input=three)
        if number:
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
        found = run_backward(
            grads[0], rows, ctx.sizes, Weights(w, u, b), Saved(*saved), ctx.reverse, needed
        )
        return (None, None, *found)


class FusedBiLSTM(torch.autograd.Function):
    """Both directions as one node, so that they run side by side, backward too."""

    @staticmethod
    def forward(ctx: Any, sizes: tuple[int, ...], *tensors: Tensor) -> tuple[Tensor, Tensor]:
        onward, back = tensors[:4], tensors[4:]
        saved = run_both(
            lambda: run_forward(onward[0], sizes, Weights(*onward[1:]), False),
            lambda: run_forward(back[0], sizes, Weights(*back[1:]), True),
            onward[0].device,
        )
        ctx.save_for_backward(*tensors, *saved[0], *saved[1])
        ctx.sizes = sizes
        return saved[0].states, saved[1].states

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        needed = ctx.needs_input_grad[1:]

        def direction(number: int) -> tuple[Tensor | None, ...]:
            rows, w, u, b = saved[4 * number : 4 * number + 4]
            kept = Saved(*saved[8 + 3 * number : 11 + 3 * number])
            wanted = needed[4 * number : 4 * number + 4]
            return run_backward(
                grads[number], rows, ctx.sizes, Weights(w, u, b), kept, bool(number), wanted
            )

        first, second = run_both(lambda: direction(0), lambda: direction(1), saved[0].device)
        return (None, *first, *second)


def steps_of(sizes: tuple[int, ...], reverse: bool) -> list[tuple[int, int]]:
    """(first row, number of rows) of every step, in the order in which they are computed."""
    steps = list(zip(accumulate((0, *sizes)), sizes, strict=False))  # the last start has no step
    return steps[::-1] if reverse else steps
