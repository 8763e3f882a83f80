"""One direction of one LSTM layer over packed rows.

    i, f, o = sigmoid(W x_t + U h_{t-1} + b)        input, forget and output gates
    g       = tanh(W x_t + U h_{t-1} + b)           candidate
    c_t     = f * c_{t-1} + i * g
    h_t     = o * tanh(c_t)

The four parts are stacked in each matrix, in the order i, f, o, g, so that the three sigmoids are
adjacent. `lstm_plain` is the equations, differentiated by autograd; `lstm` and `bilstm` return the
same states from the kernels of `genpool.encoder.fused_lstm`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from genpool.encoder.fused_lstm import Weights, lstm_fused, lstm_library, steps_of
from genpool.tensors.fast import fast


def lstm_cell(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Returns h_t and c_t (sentences, hidden) of c_{t-1} and of W x_t + U h_{t-1} + b.

    gates (sentences, 4 hidden), before their activations.
    """
    hidden = c.shape[1]
    i, f, o = gates[:, : 3 * hidden].sigmoid().chunk(3, dim=1)
    new_c = f * c + i * gates[:, 3 * hidden :].tanh()
    return o * new_c.tanh(), new_c


def lstm_plain(
    rows: Tensor, sizes: tuple[int, ...], weights: Weights, reverse: bool
) -> tuple[Tensor, Tensor]:
    """Returns the states and the cells (rows, hidden) of packed inputs (rows, input_dim).

    sizes as in `Packing`.
    """
    w, u, b = weights
    projected = torch.addmm(b, rows, w.T)  # (rows, 4 hidden)
    h = c = projected.new_zeros(sizes[0] if sizes else 0, u.shape[1])  # (sentences, hidden)
    states, cells = [h[:0]], [c[:0]]
    for start, size in steps_of(sizes, reverse):
        gates = projected[start : start + size] + h[:size] @ u.T  # (size, 4 hidden)
        new_h, new_c = lstm_cell(gates, c[:size])
        states.append(new_h)
        cells.append(new_c)
        # Sentences that have ended (or, in reverse, have not started) keep their state.
        c, h = torch.cat([new_c, c[size:]]), torch.cat([new_h, h[size:]])
    order = -1 if reverse else 1
    return torch.cat(states[::order]), torch.cat(cells[::order])


def lstm(rows: Tensor, sizes: tuple[int, ...], weights: Weights, reverse: bool) -> Tensor:
    """Returns the states of `lstm_plain`, in less time and memory."""
    if not sizes or not fast():
        return lstm_plain(rows, sizes, weights, reverse)[0]
    if rows.is_cuda:
        return lstm_library(rows, sizes, weights, reverse)
    return lstm_fused([rows], sizes, [weights], [reverse])[0]


def bilstm(
    rows: tuple[Tensor, Tensor], sizes: tuple[int, ...], forwards: Weights, backwards: Weights
) -> tuple[Tensor, Tensor]:
    """Returns forward states of the first rows and backward states of the second, in parallel."""
    if not sizes or not fast() or rows[0].is_cuda:
        return lstm(rows[0], sizes, forwards, False), lstm(rows[1], sizes, backwards, True)
    first, second = lstm_fused(rows, sizes, [forwards, backwards], [False, True])
    return first, second


def input_gates(inputs: Tensor, previous: Tensor, w: Tensor, u: Tensor, b: Tensor) -> Tensor:
    """Returns i_t (..., hidden), which gated pooling reads, from x_t and h_{t-1}.

    inputs (..., input_dim); previous (..., hidden); of w, u and b only
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
        return lstm(rows, sizes, self.weights, self.reverse)

    def gates(self, rows: Tensor, states: Tensor, previous: Tensor) -> Tensor:
        """Returns the input gates (rows, hidden) that led to the states (rows, hidden).

        previous (rows,): the row of h_{t-1}, -1 where there is none (`Packing.previous`).
        """
        missing = (previous < 0).unsqueeze(1)  # (rows, 1)
        before = states[previous.clamp(min=0)].masked_fill(missing, 0)  # (rows, hidden)
        return input_gates(rows, before, self.w, self.u, self.b)

    def extra_repr(self) -> str:
        return f"{self.input_dim}, {self.hidden_dim}, reverse={self.reverse}"
