"""One direction of one LSTM layer over packed rows.

    i, f, o = sigmoid(W x_t + U h_{t-1} + b)        input, forget and output gates
    g       = tanh(W x_t + U h_{t-1} + b)           candidate
    c_t     = f * c_{t-1} + i * g
    h_t     = o * tanh(c_t)

The four parts are stacked in each matrix, in the order i, f, o, g, so that the three sigmoids are
adjacent. `lstm_plain` is the equations, differentiated by autograd. `lstm` returns the same values
from one autograd function (`fused_lstm`), and `bilstm` does so for two directions in parallel.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from genpool.encoder.fused_lstm import FusedBiLSTM, FusedLSTM, Weights, steps_of
from genpool.tensors.fast import fast


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
    states: Tensor = torch.lstm(
        inputs,
        torch.tensor(sizes),
        (start, start),
        weights,
        True,
        1,
        0.0,
        rows.requires_grad,
        False,
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
