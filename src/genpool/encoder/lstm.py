"""One direction of one LSTM layer over packed rows.

    i, f, o = sigmoid(W x_t + U h_{t-1} + b)        input, forget and output gates
    g       = tanh(W x_t + U h_{t-1} + b)           candidate
    c_t     = f * c_{t-1} + i * g
    h_t     = o * tanh(c_t)

The four parts are stacked in each matrix, in the order i, f, o, g, so that the three sigmoids are
adjacent. `lstm_plain` is the equations, differentiated by autograd. `lstm` returns the same values
from one autograd function (`FusedLSTM`), and `bilstm` does so for two directions in parallel.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from genpool.tensors.fast import fast
from genpool.tensors.threads import run_both


class Weights(NamedTuple):
    """One direction: w (4 hidden, input_dim); u (4 hidden, hidden); b (4 hidden,)."""

    w: Tensor
    u: Tensor
    b: Tensor


def steps_of(sizes: tuple[int, ...], reverse: bool) -> list[tuple[int, int]]:
    """Returns (first row, number of rows) of every step, in the order of computation."""
    steps = list(zip(accumulate((0, *sizes)), sizes, strict=False))  # the last start has no step
    return steps[::-1] if reverse else steps


def lstm_plain(
    rows: Tensor, sizes: tuple[int, ...], w: Tensor, u: Tensor, b: Tensor, reverse: bool
) -> Tensor:
    """Returns the states (rows, hidden) of packed inputs (rows, input_dim), step by step.

    w (4 hidden, input_dim); u (4 hidden, hidden); b (4 hidden,); sizes as in `Packing`.
    """
    hidden = u.shape[1]
    projected = torch.addmm(b, rows, w.T)  # (rows, 4 hidden)
    h = c = rows.new_zeros(sizes[0] if sizes else 0, hidden)  # (sentences, hidden)
    states: list[Tensor] = []
    for start, size in steps_of(sizes, reverse):
        gates = projected[start : start + size] + h[:size] @ u.T  # (size, 4 hidden)
        i, f, o = gates[:, : 3 * hidden].sigmoid().chunk(3, dim=1)
        new_c = f * c[:size] + i * gates[:, 3 * hidden :].tanh()
        new_h = o * new_c.tanh()
        states.append(new_h)
        # Sentences that have ended (or, in reverse, have not started) keep their state.
        c, h = torch.cat([new_c, c[size:]]), torch.cat([new_h, h[size:]])
    if not states:
        return rows.new_zeros(0, hidden)
    return torch.cat(states[::-1] if reverse else states)


def lstm(
    rows: Tensor, sizes: tuple[int, ...], w: Tensor, u: Tensor, b: Tensor, reverse: bool
) -> Tensor:
    """Returns the same states as `lstm_plain`, in less time and memory."""
    if not sizes or not fast():
        return lstm_plain(rows, sizes, w, u, b, reverse)
    if rows.is_cuda:
        return lstm_library(rows, sizes, w, u, b, reverse)
    # Autocast would choose a type for each multiplication; in-place steps need one type for all.
    with torch.autocast(rows.device.type, enabled=False):
        states: Tensor = FusedLSTM.apply(sizes, reverse, rows.to(w.dtype), w, u, b)  # type: ignore[no-untyped-call]
    return states


def bilstm(
    rows: tuple[Tensor, Tensor], sizes: tuple[int, ...], forwards: Weights, backwards: Weights
) -> tuple[Tensor, Tensor]:
    """Returns forward states of the first rows and backward states of the second, in parallel."""
    if not sizes or not fast() or rows[0].is_cuda:
        return lstm(rows[0], sizes, *forwards, False), lstm(rows[1], sizes, *backwards, True)
    with torch.autocast(rows[0].device.type, enabled=False):
        first, second = (side.to(forwards.w.dtype) for side in rows)
        states: tuple[Tensor, Tensor] = FusedBiLSTM.apply(  # type: ignore[no-untyped-call]
            sizes, first, *forwards, second, *backwards
        )
    return states


def lstm_library(
    rows: Tensor, sizes: tuple[int, ...], w: Tensor, u: Tensor, b: Tensor, reverse: bool
) -> Tensor:
    """Returns the same states from PyTorch's kernel, which on CUDA is cuDNN's.

    It runs forward in time only: for the backward direction every sentence is reversed and its
    states are reversed again.
    """
    reversal = _reversal_index(sizes, rows.device) if reverse else None
    inputs = rows if reversal is None else rows[reversal]
    weights = [torch_gate_order(weight) for weight in (w, u, b)]
    weights.append(torch.zeros_like(b))  # torch has a second bias
    start = rows.new_zeros(1, sizes[0], u.shape[1])
    # cuDNN differentiates only a call that is marked as training, whichever tensor is trained.
    trains = torch.is_grad_enabled() and any(t.requires_grad for t in (rows, w, u, b))
    states: Tensor = torch.lstm(
        inputs, torch.tensor(sizes), (start, start), weights, True, 1, 0.0, trains, False
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


def input_gates(inputs: Tensor, previous: Tensor, w: Tensor, u: Tensor, b: Tensor) -> Tensor:
    """Returns i_t (..., hidden), which gated pooling reads, from x_t and h_{t-1}.

    inputs (..., input_dim); previous (..., hidden); w, u and b as in `lstm_plain`, of which only
    the first part, i, is used: the order of the others does not matter.
    """
    hidden = u.shape[1]
    logits = inputs @ w[:hidden].T + previous @ u[:hidden].T + b[:hidden]
    return logits.sigmoid()  # (..., hidden)


class LSTMDirection(nn.Module):
    """The parameters of one direction, initialized as in the released program."""

    def __init__(self, input_dim: int, hidden_dim: int, reverse: bool = False) -> None:
        super().__init__()
        self.input_dim, self.hidden_dim, self.reverse = input_dim, hidden_dim, reverse
        self.w = nn.Parameter(torch.empty(4 * hidden_dim, input_dim))
        self.u = nn.Parameter(torch.empty(4 * hidden_dim, hidden_dim))
        self.b = nn.Parameter(torch.empty(4 * hidden_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Re-initializes: recurrent weights orthogonal per gate, biases 0, input weights Gaussian.

        The Gaussian's standard deviation is 0.01. Input matrices that are square per gate are
        orthogonal too.
        """
        with torch.no_grad():
            for gate in self.u.chunk(4):
                nn.init.orthogonal_(gate)
            for gate in self.w.chunk(4):
                if self.input_dim == self.hidden_dim:
                    nn.init.orthogonal_(gate)
                else:
                    nn.init.normal_(gate, std=0.01)
            nn.init.zeros_(self.b)

    @property
    def weights(self) -> Weights:
        """The three parameters w, u and b."""
        return Weights(self.w, self.u, self.b)

    def forward(self, rows: Tensor, sizes: tuple[int, ...]) -> Tensor:
        """Returns the states (rows, hidden) of packed inputs (rows, input_dim)."""
        return lstm(rows, sizes, self.w, self.u, self.b, self.reverse)

    def gates(self, rows: Tensor, states: Tensor, previous: Tensor) -> Tensor:
        """Returns the input gates (rows, hidden) that led to the states (rows, hidden).

        previous (rows,): the row of h_{t-1}, -1 where there is none (`Packing.previous`).
        """
        missing = (previous < 0).unsqueeze(1)  # (rows, 1)
        before = states[previous.clamp(min=0)].masked_fill(missing, 0)  # (rows, hidden)
        return input_gates(rows, before, self.w, self.u, self.b)

    def extra_repr(self) -> str:
        return f"{self.input_dim}, {self.hidden_dim}, reverse={self.reverse}"


# The fused form: a layer is one node of the autograd graph. Its backward pass collects the gate
# gradients of all steps and computes each weight gradient with one large multiplication at the end,
# where autograd would make one for every step. No step copies a state: the packed rows of the
# previous step are read in place.

#: grad * s (1 - s) and grad * (1 - t^2), each in one pass
sigmoid_backward = torch.ops.aten.sigmoid_backward
tanh_backward = torch.ops.aten.tanh_backward


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
