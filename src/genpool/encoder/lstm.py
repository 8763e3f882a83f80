"""One direction of one LSTM layer over packed rows.

    i, f, o = sigmoid(W x_t + U h_{t-1} + b)        input, forget and output gates
    g       = tanh(W x_t + U h_{t-1} + b)           candidate
    c_t     = f * c_{t-1} + i * g
    h_t     = o * tanh(c_t)

The four parts stand one under the other in each matrix, in the order i, f, o, g: the three
sigmoids are neighbours. `lstm_plain` is the equations, differentiated by autograd. `lstm` gives
the same numbers as one autograd function: its backward pass collects the gate gradients of all
steps and forms each weight gradient with a single large multiplication.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn


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


def lstm(
    rows: Tensor, sizes: tuple[int, ...], w: Tensor, u: Tensor, b: Tensor, reverse: bool
) -> Tensor:
    """The same as `lstm_plain`, in less time and memory."""
    if not sizes:
        return lstm_plain(rows, sizes, w, u, b, reverse)
    # Autocast would choose a type for each multiplication; in-place steps need one type for all.
    with torch.autocast(rows.device.type, enabled=False):
        rows = rows.to(w.dtype)
        states: Tensor = _FusedLSTM.apply(rows, sizes, w, u, b, reverse)  # type: ignore[no-untyped-call]
    return states


class _FusedLSTM(torch.autograd.Function):
    """All steps of one direction as one node of the graph."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        sizes: tuple[int, ...],
        w: Tensor,
        u: Tensor,
        b: Tensor,
        reverse: bool,
    ) -> Tensor:
        hidden = u.shape[1]
        gates = torch.addmm(b, rows, w.T)  # (rows, 4 hidden), turned into activations in place
        cells = rows.new_empty(len(rows), hidden)
        states = rows.new_empty(len(rows), hidden)
        h = rows.new_zeros(sizes[0], hidden)
        c = rows.new_zeros(sizes[0], hidden)
        u_t = u.T.contiguous()
        for start, size in _steps(sizes, reverse):
            now = slice(start, start + size)
            gates[now].addmm_(h[:size], u_t)
            gates[now, : 3 * hidden].sigmoid_()
            gates[now, 3 * hidden :].tanh_()
            i, f, o, g = gates[now].chunk(4, dim=1)
            torch.mul(f, c[:size], out=cells[now]).addcmul_(i, g)
            torch.mul(o, cells[now].tanh(), out=states[now])
            c[:size], h[:size] = cells[now], states[now]
        ctx.save_for_backward(rows, w, u, gates, cells, states)
        ctx.sizes, ctx.reverse = sizes, reverse
        return states

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        rows, w, u, gates, cells, states = ctx.saved_tensors
        sizes, reverse = ctx.sizes, ctx.reverse
        hidden = u.shape[1]
        grad_states = grads[0]
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
            torch.mul(dh, tanh_c, out=d_o).mul_(o * (1 - o))
            torch.mul(dc, g, out=d_i).mul_(i * (1 - i))
            torch.mul(dc, i, out=d_g).mul_(1 - g.square())
            d_f.zero_()
            if number:
                last_start, last_size = steps[number - 1]
                shared = min(size, last_size)
                last = slice(last_start, last_start + shared)
                torch.mul(dc[:shared], cells[last], out=d_f[:shared])
                d_f.mul_(f * (1 - f))
                before[start : start + shared] = states[last]
            dc.mul_(f)
            torch.mm(grad_gates[now], u, out=grad_h[:size])
        need_rows, _, need_w, need_u, need_b, _ = ctx.needs_input_grad
        return (
            grad_gates @ w if need_rows else None,
            None,
            grad_gates.T @ rows if need_w else None,
            grad_gates.T @ before if need_u else None,
            grad_gates.sum(dim=0) if need_b else None,
            None,
        )


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

    def forward(self, rows: Tensor, sizes: tuple[int, ...]) -> Tensor:
        return lstm(rows, sizes, self.w, self.u, self.b, self.reverse)  # (rows, hidden)

    def gates(self, rows: Tensor, states: Tensor, previous: Tensor) -> Tensor:
        return input_gates(rows, states, previous, self.w, self.u, self.b)  # (rows, hidden)

    def extra_repr(self) -> str:
        return f"{self.input_dim}, {self.hidden_dim}, reverse={self.reverse}"
