"""One direction of one LSTM layer over packed rows.

    i, f, o = sigmoid(W x_t + U h_{t-1} + b)        input, forget and output gates
    g       = tanh(W x_t + U h_{t-1} + b)           candidate
    c_t     = f * c_{t-1} + i * g
    h_t     = o * tanh(c_t)

The four parts stand one under the other in each matrix, in the order i, f, o, g: the three
sigmoids are neighbours. `lstm_plain` is the equations, differentiated by autograd. `lstm` gives
the same numbers as one autograd function (`fused_lstm`), and `bilstm` does so for two directions
side by side.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from genpool.encoder.fused_lstm import FusedBiLSTM, FusedLSTM, Weights, steps_of
from genpool.tensors.fast import fast


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
    for start, size in steps_of(sizes, reverse):
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
    if not sizes or not fast():
        return lstm_plain(rows, sizes, w, u, b, reverse)
    if rows.is_cuda:
        return lstm_library(rows, sizes, w, u, b, reverse)
    # Autocast would choose a type for each multiplication; in-place steps need one type for all.
    with torch.autocast(rows.device.type, enabled=False):
        states: Tensor = FusedLSTM.apply(sizes, reverse, rows.to(w.dtype), w, u, b)  # type: ignore[no-untyped-call]
    return states


def bilstm(
    rows: tuple[Tensor, Tensor], sizes: tuple[int, ...], onward: Weights, back: Weights
) -> tuple[Tensor, Tensor]:
    """Forward states of the first rows and backward states of the second, side by side."""
    if not sizes or not fast() or rows[0].is_cuda:
        return lstm(rows[0], sizes, *onward, False), lstm(rows[1], sizes, *back, True)
    with torch.autocast(rows[0].device.type, enabled=False):
        given = [each.to(onward.w.dtype) for each in rows]
        states: tuple[Tensor, Tensor] = FusedBiLSTM.apply(  # type: ignore[no-untyped-call]
            sizes, given[0], *onward, given[1], *back
        )
    return states


def lstm_library(
    rows: Tensor, sizes: tuple[int, ...], w: Tensor, u: Tensor, b: Tensor, reverse: bool
) -> Tensor:
    """The same by PyTorch's own kernel, which on CUDA is cuDNN's.

    It knows one direction of time: backward, every sentence is turned round and back again.
    """
    turned = _turned_round(sizes, rows.device) if reverse else None
    given = rows if turned is None else rows[turned]
    weights = [torch_gate_order(each) for each in (w, u, b)]
    weights.append(torch.zeros_like(b))  # torch has a second bias
    start = rows.new_zeros(1, sizes[0], u.shape[1])
    states: Tensor = torch.lstm(
        given, torch.tensor(sizes), (start, start), weights, True, 1, 0.0, rows.requires_grad, False
    )[0]
    return states if turned is None else states[turned]


def torch_gate_order(weights: Tensor) -> Tensor:
    """The parts i, f, o, g in torch's order i, f, g, o."""
    i, f, o, g = weights.chunk(4)
    return torch.cat([i, f, g, o])


def _turned_round(sizes: tuple[int, ...], device: torch.device) -> Tensor:
    """(rows,): the row that is as far from the end of its sentence as this one from its start."""
    counts = torch.tensor(sizes, device=device)  # (steps,)
    starts = counts.cumsum(0) - counts  # (steps,)
    step = torch.arange(len(sizes), device=device).repeat_interleave(counts)  # (rows,)
    place = torch.arange(len(step), device=device) - starts[step]  # (rows,): sentence by rank
    lengths = (counts.unsqueeze(1) > torch.arange(sizes[0], device=device)).sum(dim=0)
    return starts[lengths[place] - 1 - step] + place


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
