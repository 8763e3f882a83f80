"""One direction of one LSTM layer over packed rows.

    i, f, o = sigmoid(W x_t + U h_{t-1} + b)        input, forget and output gates
    g       = tanh(W x_t + U h_{t-1} + b)           candidate
    c_t     = f * c_{t-1} + i * g
    h_t     = o * tanh(c_t)

The four parts stand one under the other in each matrix, in the order i, f, o, g: the three
sigmoids are neighbours. `lstm_plain` is the equations, differentiated by autograd. `lstm` gives
the same numbers as one autograd function: its backward pass collects the gate gradients of all
steps and forms each weight gradient with a single large multiplication. `bilstm` does so for two
directions side by side.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from genpool.threads import both


def lstm_plain(
    rows: Tensor, sizes: tuple[int, ...], w: Tensor, u: Tensor, b: Tensor, reverse: bool
) -> Tensor:
    """Packed inputs (rows, input_dim) -> states (rows, hidden), step by step.

    w (4 hidden, input_dim); u (4 hidden, hidden); b (4 hidden,); sizes as in `Packing`.
    """
    hidden = u.shape[1]
    projected = torch.addmm(b, rows, w.T)  # (rows, 4 hidden)
    h = c = rows.new_zeros(sizes[0] if sizes else 0, hidden)  # (sentences, hidden)
    states: list[Tensor] = []
    for start, size in _steps(sizes, reverse):
        gates = projected[start : start + size] + h[:size] @ u.T  # (size, 4 hidden)
        i, f, o = gates[:, : 3 * hidden].sigmoid().chunk(3, dim=1)
        new_c = f * c[:size] + i * gates[:, 3 * hidden :].tanh()
        new_h = o * new_c.tanh()
        states.append(new_h)
        # Sentences that ended (or, in reverse, have not begun) keep the state that they have.
        c, h = torch.cat([new_c, c[size:]]), torch.cat([new_h, h[size:]])
    if not states:
        return rows.new_zeros(0, hidden)
    return torch.cat(states[::-1] if reverse else states)


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
    """All steps of one direction, with activations written over the gates."""
    hidden = weights.u.shape[1]
    gates = torch.addmm(weights.b, rows, weights.w.T)  # (rows, 4 hidden)
    cells = rows.new_empty(len(rows), hidden)
    states = rows.new_empty(len(rows), hidden)
    u_t = weights.u.T.contiguous()
    last = slice(0, 0)  # the rows of the step before; sentences that begin now have none
    for start, size in _steps(sizes, reverse):
        now = slice(start, start + size)
        shared = min(size, last.stop - last.start)
        last = slice(last.start, last.start + shared)
        gates[start : start + shared].addmm_(states[last], u_t)
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
    steps = _steps(sizes, reverse)
    for number in range(len(steps) - 1, -1, -1):
        start, size = steps[number]
        now = slice(start, start + size)
        i, f, o, g = gates[now].chunk(4, dim=1)
        d_i, d_f, d_o, d_g = grad_gates[now].chunk(4, dim=1)
        dh = grad_h[:size].add_(grad_states[now])
        tanh_c = cells[now].tanh()
        # d tanh(c) = 1 - tanh(c)^2; the two products below are dh * o * (1 - tanh(c)^2).
        through = dh * o
        dc = grad_c[:size].add_(through).addcmul_(through, tanh_c.square(), value=-1)
        torch.mul(dh, tanh_c, out=d_o)
        torch.mul(dc, g, out=d_i)
        torch.mul(dc, i, out=d_g).mul_(1 - g.square())
        d_f.zero_()
        if number:
            last_start, last_size = steps[number - 1]
            shared = min(size, last_size)
            last = slice(last_start, last_start + shared)
            torch.mul(dc[:shared], cells[last], out=d_f[:shared])
            before[start : start + shared] = states[last]
        # The three sigmoids are neighbours: d sigmoid = s - s^2, for all of them at once.
        sigmoids = gates[now, : 3 * hidden]
        grad_gates[now, : 3 * hidden].mul_(sigmoids - sigmoids.square())
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


class _FusedLSTM(torch.autograd.Function):
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


class _FusedBiLSTM(torch.autograd.Function):
    """Both directions as one node, so that they run side by side, backward too."""

    @staticmethod
    def forward(ctx: Any, sizes: tuple[int, ...], *tensors: Tensor) -> tuple[Tensor, Tensor]:
        onward, back = tensors[:4], tensors[4:]
        saved = both(
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

        first, second = both(lambda: direction(0), lambda: direction(1), saved[0].device)
        return (None, *first, *second)


def lstm(
    rows: Tensor, sizes: tuple[int, ...], w: Tensor, u: Tensor, b: Tensor, reverse: bool
) -> Tensor:
    """The same as `lstm_plain`, in less time and memory."""
    if not sizes:
        return lstm_plain(rows, sizes, w, u, b, reverse)
    # Autocast would choose a type for each multiplication; in-place steps need one type for all.
    with torch.autocast(rows.device.type, enabled=False):
        states: Tensor = _FusedLSTM.apply(sizes, reverse, rows.to(w.dtype), w, u, b)  # type: ignore[no-untyped-call]
    return states


def bilstm(
    rows: tuple[Tensor, Tensor], sizes: tuple[int, ...], onward: Weights, back: Weights
) -> tuple[Tensor, Tensor]:
    """Forward states of the first rows and backward states of the second, side by side."""
    if not sizes:
        return lstm(rows[0], sizes, *onward, False), lstm(rows[1], sizes, *back, True)
    with torch.autocast(rows[0].device.type, enabled=False):
        given = [each.to(onward.w.dtype) for each in rows]
        states: tuple[Tensor, Tensor] = _FusedBiLSTM.apply(  # type: ignore[no-untyped-call]
            sizes, given[0], *onward, given[1], *back
        )
    return states


def _steps(sizes: tuple[int, ...], reverse: bool) -> list[tuple[int, int]]:
    """(first row, number of rows) of every step, in the order in which they are computed."""
    steps = list(zip(accumulate((0, *sizes)), sizes, strict=False))  # the last start has no step
    return steps[::-1] if reverse else steps


def input_gates(
    rows: Tensor, states: Tensor, previous: Tensor, w: Tensor, u: Tensor, b: Tensor
) -> Tensor:
    """i_t of every row, from the states that the layer gave: what gated pooling asks for.

    previous (rows,): the row of h_{t-1}, -1 where there is none (`Packing.previous`).
    """
    hidden = u.shape[1]
    none = (previous < 0).unsqueeze(1)  # (rows, 1)
    before = states[previous.clamp(min=0)].masked_fill(none, 0)  # (rows, hidden)
    logits = rows @ w[:hidden].T + before @ u[:hidden].T + b[:hidden]
    return logits.sigmoid()  # (rows, hidden)


class LSTMDirection(nn.Module):
    """The parameters of one direction, and their start as in the released program."""

    def __init__(self, input_dim: int, hidden_dim: int, reverse: bool = False) -> None:
        super().__init__()
        self.input_dim, self.hidden_dim, self.reverse = input_dim, hidden_dim, reverse
        self.w = nn.Parameter(torch.empty(4 * hidden_dim, input_dim))
        self.u = nn.Parameter(torch.empty(4 * hidden_dim, hidden_dim))
        self.b = nn.Parameter(torch.empty(4 * hidden_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Recurrent matrices orthogonal per gate, biases 0, input matrices Gaussian 0.01.

        An input matrix that is square per gate is orthogonal too.
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
        return Weights(self.w, self.u, self.b)

    def forward(self, rows: Tensor, sizes: tuple[int, ...]) -> Tensor:
        return lstm(rows, sizes, self.w, self.u, self.b, self.reverse)  # (rows, hidden)

    def gates(self, rows: Tensor, states: Tensor, previous: Tensor) -> Tensor:
        return input_gates(rows, states, previous, self.w, self.u, self.b)  # (rows, hidden)

    def extra_repr(self) -> str:
        return f"{self.input_dim}, {self.hidden_dim}, reverse={self.reverse}"
