"""The kernels of an LSTM over packed rows: a fused one for the CPU, PyTorch's for CUDA.

In the fused form a layer is one node of the autograd graph. Its backward pass collects the gate
gradients of all steps and computes each weight gradient with one large multiplication at the end,
where autograd would make one for every step. No step copies a state: the packed rows of the
previous step are read in place. The quick form of inference runs the same steps (`run_steps`) on
projections that it looks up in a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from genpool.tensors.threads import run_both

Result = TypeVar("Result")


class Weights(NamedTuple):
    """One direction: w (4 hidden, input_dim); u (4 hidden, hidden); b (4 hidden,)."""

    w: Tensor
    u: Tensor
    b: Tensor


def steps_of(sizes: tuple[int, ...], reverse: bool) -> list[tuple[int, int]]:
    """Returns (first row, number of rows) of every step, in the order of computation."""
    steps = list(zip(accumulate((0, *sizes)), sizes, strict=False))  # the last start has no step
    return steps[::-1] if reverse else steps


def lstm_fused(
    rows: Sequence[Tensor],
    sizes: tuple[int, ...],
    weights: Sequence[Weights],
    reverse: Sequence[bool],
) -> tuple[Tensor, ...]:
    """Returns the states (rows, hidden) of one direction, or of two in parallel."""
    # Autocast would choose a type for each multiplication; in-place steps need one type for all.
    with torch.autocast(rows[0].device.type, enabled=False):
        tensors = [
            tensor
            for inputs, direction in zip(rows, weights, strict=True)
            for tensor in (inputs.to(direction.w.dtype), *direction)
        ]
        states: tuple[Tensor, ...] = FusedLSTM.apply(sizes, tuple(reverse), *tensors)  # type: ignore[no-untyped-call]
    return states


class FusedLSTM(torch.autograd.Function):
    """All steps of one or two directions as one node of the graph, two in parallel."""

    @staticmethod
    def forward(
        ctx: Any, sizes: tuple[int, ...], reverse: tuple[bool, ...], *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        def run(side: int) -> Saved:
            rows, w, u, b = tensors[4 * side : 4 * side + 4]
            return run_steps(torch.addmm(b, rows, w.T), sizes, adder(u), reverse[side])

        saved = _each_side(run, len(reverse), tensors[0].device)
        ctx.save_for_backward(*tensors, *(tensor for side in saved for tensor in side))
        ctx.sizes, ctx.reverse = sizes, reverse
        return tuple(side.states for side in saved)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        tensors, sides = ctx.saved_tensors, len(ctx.reverse)
        needed = ctx.needs_input_grad[2:]

        def run(side: int) -> tuple[Tensor | None, ...]:
            own, after = slice(4 * side, 4 * side + 4), 4 * sides + 3 * side
            rows, *weights = tensors[own]
            saved = Saved(*tensors[after : after + 3])
            return run_backward(
                grads[side],
                rows,
                ctx.sizes,
                Weights(*weights),
                saved,
                ctx.reverse[side],
                needed[own],
            )

        gradients = _each_side(run, sides, tensors[0].device)
        return (None, None, *(gradient for side in gradients for gradient in side))


def _each_side(
    work: Callable[[int], Result], sides: int, device: torch.device
) -> tuple[Result, ...]:
    if sides == 1:
        return (work(0),)
    return run_both(lambda: work(0), lambda: work(1), device)


#: grad * s (1 - s) and grad * (1 - t^2), each in one pass
sigmoid_backward = torch.ops.aten.sigmoid_backward
tanh_backward = torch.ops.aten.tanh_backward


class Saved(NamedTuple):
    """Activations of a direction that its backward pass needs, all (rows, ...)."""

    gates: Tensor
    cells: Tensor
    states: Tensor


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


def lstm_library(rows: Tensor, sizes: tuple[int, ...], weights: Weights, reverse: bool) -> Tensor:
    """Returns the same states from PyTorch's kernel, which on CUDA is cuDNN's.

    It runs forward in time only: for the backward direction every sentence is reversed and its
    states are reversed again.
    """
    reversal = _reversal_index(sizes, rows.device) if reverse else None
    inputs = rows if reversal is None else rows[reversal]
    ordered = [torch_gate_order(weight) for weight in weights]
    ordered.append(torch.zeros_like(weights.b))  # torch has a second bias
    start = rows.new_zeros(1, sizes[0], weights.u.shape[1])
    # cuDNN differentiates only a call that is marked as training, whichever tensor is trained.
    trains = torch.is_grad_enabled() and any(t.requires_grad for t in (rows, *weights))
    states: Tensor = torch.lstm(
        inputs, torch.tensor(sizes), (start, start), ordered, True, 1, 0.0, trains, False
    )[0]
    return states if reversal is None else states[reversal]


def torch_gate_order(weights: Tensor) -> Tensor:
    """Returns weights whose parts are i, f, o, g in torch's order i, f, g, o."""
    i, f, o, g = weights.chunk(4)
    return torch.cat([i, f, g, o])


def _reversal_index(sizes: tuple[int, ...], device: torch.device) -> Tensor:
    """Returns (rows,): the row as far from the end of its sentence as this one from the start."""
    counts = torch.tensor(sizes, device=device)  # (steps,)
    starts = counts.cumsum(0) - counts  # (steps,)
    step = torch.arange(len(sizes), device=device).repeat_interleave(counts)  # (rows,)
    place = torch.arange(len(step), device=device) - starts[step]  # (rows,): sentence by rank
    lengths = (counts.unsqueeze(1) > torch.arange(sizes[0], device=device)).sum(dim=0)
    return starts[lengths[place] - 1 - step] + place
