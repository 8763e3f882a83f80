"""The stacked BiLSTM: the equations of an LSTM, its parameters, the stacks, and the fast kernels.

    i, f, o = sigmoid(W x_t + U h_{t-1} + b)        input, forget and output gates
    g       = tanh(W x_t + U h_{t-1} + b)           candidate
    c_t     = f * c_{t-1} + i * g
    h_t     = o * tanh(c_t)

The four parts are stacked in each matrix, in the order i, f, o, g, so that the three sigmoids are
adjacent. `lstm_plain` is the equations, differentiated by autograd; `lstm` returns the same states
from a fused kernel, on CUDA from PyTorch's.

Stacks of BiLSTM layers differ in the input x^l of layer l only, by the token vectors e and h^l, the
states [forward ; backward] of layer l:

    BiLSTMEncoder            x^l = h^{l-1}
    StackedBiLSTMEncoder     x^l = [e ; h^{l-1}]              the paper's, in two forms
    ShortcutStackedEncoder   x^l = [e ; h^1 ; ... ; h^{l-1}]  Nie & Bansal 2017
    ResidualStackedEncoder   x^l = [e ; h^1 + ... + h^{l-1}]  Nie & Bansal 2017

The last two are in `genpool.encoder.baselines`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.encoder.base import Encoder, StatesAndGates, require_layers
from genpool.tensors.modules import fast, require_literal, run_both
from genpool.tensors.packing import Packing, Sizes, steps_of

DirectionPair = tuple[Tensor, Tensor]  # of the forward and the backward direction, (rows, dim)
#: "direction": each direction reads its own direction's states; "both": those of both directions
Shortcut = Literal["direction", "both"]


class Weights(NamedTuple):
    """One direction: w (4 hidden, input_dim); u (4 hidden, hidden); b (4 hidden,)."""

    w: Tensor
    u: Tensor
    b: Tensor


def lstm_cell(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Returns h_t and c_t (sentences, hidden) of gates W x_t + U h_{t-1} + b and of c_{t-1}."""
    hidden = c.shape[1]
    i, f, o = gates[:, : 3 * hidden].sigmoid().chunk(3, dim=1)
    new_c = f * c + i * gates[:, 3 * hidden :].tanh()
    return o * new_c.tanh(), new_c


def lstm_plain(
    rows: Tensor, sizes: Sizes, weights: Weights, reverse: bool
) -> tuple[Tensor, Tensor]:
    """Returns the states and the cells (rows, hidden) of packed inputs (rows, input_dim)."""
    w, u, b = weights
    projected = torch.addmm(b, rows, w.T)  # (rows, 4 hidden)
    h = c = projected.new_zeros(sizes[0] if sizes else 0, u.shape[1])  # (sentences, hidden)
    states, cells = [h[:0]], [c[:0]]
    for now, size in steps_of(sizes, reverse):
        gates = projected[now] + h[:size] @ u.T  # (size, 4 hidden)
        new_h, new_c = lstm_cell(gates, c[:size])
        states.append(new_h)
        cells.append(new_c)
        # Sentences that have ended (or, in reverse, have not started) keep their state.
        c, h = torch.cat([new_c, c[size:]]), torch.cat([new_h, h[size:]])
    order = -1 if reverse else 1
    return torch.cat(states[::order]), torch.cat(cells[::order])


def input_gates(inputs: Tensor, previous: Tensor, w: Tensor, u: Tensor, b: Tensor) -> Tensor:
    """Returns i_t (..., hidden), which gated pooling reads, of inputs x_t and previous h_{t-1}."""
    hidden = u.shape[1]  # i is the first part
    return (inputs @ w[:hidden].T + previous @ u[:hidden].T + b[:hidden]).sigmoid()


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
        """Re-initializes: matrices orthogonal where square per gate, else Gaussian; biases 0."""
        with torch.no_grad():
            for gate in (*self.u.chunk(4), *self.w.chunk(4)):
                if gate.shape[0] == gate.shape[1]:
                    nn.init.orthogonal_(gate)
                else:
                    nn.init.normal_(gate, std=0.01)
            nn.init.zeros_(self.b)

    @property
    def weights(self) -> Weights:
        return Weights(self.w, self.u, self.b)

    def forward(self, rows: Tensor, sizes: Sizes) -> Tensor:
        """Returns the states (rows, hidden) of packed inputs (rows, input_dim)."""
        return lstm([rows], sizes, [self.weights], [self.reverse])[0]

    def gates(self, rows: Tensor, states: Tensor, sizes: Sizes) -> Tensor:
        """Returns the input gates (rows, hidden) that led from the rows to the states."""
        return input_gates(rows, previous_rows(states, sizes, self.reverse), *self.weights)

    def extra_repr(self) -> str:
        return f"{self.input_dim}, {self.hidden_dim}, reverse={self.reverse}"


class BiLSTMLayer(nn.Module):
    """A forward and a backward direction, each with its own input rows."""

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.forwards = LSTMDirection(input_dim, hidden_dim)
        self.backwards = LSTMDirection(input_dim, hidden_dim, reverse=True)

    def forward(self, rows: DirectionPair, sizes: Sizes) -> tuple[Tensor, ...]:
        """Returns the forward and the backward states, 2 x (rows, hidden)."""
        return lstm(rows, sizes, [self.forwards.weights, self.backwards.weights], [False, True])


class BiLSTMStack(Encoder):
    """Runs the layers; a subclass defines the input of each layer in `layer_rows`."""

    bidirectional = True
    has_gates = True
    #: whether the input of the layers above the first begins with the token vectors, too
    has_shortcuts: ClassVar[bool] = True

    def __init__(self, input_dim: int, hidden_dims: Sequence[int]) -> None:
        super().__init__(input_dim, output_dim=2 * hidden_dims[-1])
        self.layers = nn.ModuleList()
        rows, below = torch.empty(0, input_dim), list[DirectionPair]()
        for hidden_dim in hidden_dims:  # the widths follow from `layer_rows`
            inputs = self.layer_rows(rows, below)[0] if below else rows
            self.layers.append(BiLSTMLayer(inputs.shape[1], hidden_dim))
            below.append((torch.empty(0, hidden_dim), torch.empty(0, hidden_dim)))

    def layer_rows(self, embedded: Tensor, below: list[DirectionPair]) -> DirectionPair:
        """Returns the input of the next layer, from e (rows, input_dim) and all states below."""
        raise NotImplementedError

    def encode_rows(self, rows: Tensor, packing: Packing, gates: bool) -> StatesAndGates:
        below: list[DirectionPair] = []
        inputs = (rows, rows)
        for layer in self.layers:
            inputs = self.layer_rows(rows, below) if below else (rows, rows)
            below.append(layer(inputs, packing.sizes))
        states = torch.cat(below[-1], dim=1)  # (rows, 2 hidden): Eq. 3
        if not gates:
            return states, None
        top = cast(BiLSTMLayer, self.layers[-1])
        ways = zip((top.forwards, top.backwards), inputs, below[-1], strict=True)
        return states, torch.cat([way.gates(x, h, packing.sizes) for way, x, h in ways], dim=1)


class BiLSTMEncoder(BiLSTMStack):
    """A plain BiLSTM: layer l reads h^{l-1}. One layer of 2048 with max pooling is InferSent.

    Args:
        input_dim: dimensions of a token vector.
        hidden_dim: dimensions of each direction.
        layers: number of layers.

    Example:
        >>> states, _ = BiLSTMEncoder(300, hidden_dim=2048)(vectors, mask)   # (batch, time, 4096)
    """

    has_shortcuts = False

    def __init__(self, input_dim: int, hidden_dim: int = 300, layers: int = 1) -> None:
        require_layers(layers, input_dim=input_dim, hidden_dim=hidden_dim)
        super().__init__(input_dim, [hidden_dim] * layers)

    def layer_rows(self, embedded: Tensor, below: list[DirectionPair]) -> DirectionPair:
        states = torch.cat(below[-1], dim=1)  # (rows, 2 hidden)
        return states, states


class StackedBiLSTMEncoder(BiLSTMStack):
    """The paper's encoder: a stacked BiLSTM with shortcuts to the token vectors (Eq. 1-3).

    Layer 1 reads the token vectors e; every further layer reads e and the states of the layer
    below. Token states are the top layer's, both directions concatenated.

    Args:
        input_dim: dimensions of a token vector.
        hidden_dim: dimensions of each direction.
        layers: number of layers.
        shortcut: "direction", as in Eq. 1-2: each direction reads [e ; its own direction's states];
            "both", as in the authors' released program: [e ; both directions' states].

    Example:
        >>> states, _ = StackedBiLSTMEncoder(300)(vectors, mask)   # (batch, time, 2 * 300)
    """

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int = 300,
        layers: int = 3,
        shortcut: Shortcut = "direction",
    ) -> None:
        require_layers(layers, input_dim=input_dim, hidden_dim=hidden_dim)
        require_literal("shortcut", shortcut, Shortcut)
        self.shortcut = shortcut  # before the layers, whose widths depend on it
        super().__init__(input_dim, [hidden_dim] * layers)

    def layer_rows(self, embedded: Tensor, below: list[DirectionPair]) -> DirectionPair:
        forwards, backwards = below[-1]  # 2 x (rows, hidden)
        if self.shortcut == "direction":
            return torch.cat([embedded, forwards], dim=1), torch.cat([embedded, backwards], dim=1)
        rows = torch.cat([embedded, forwards, backwards], dim=1)  # (rows, input_dim + 2 hidden)
        return rows, rows


# --- the kernels


def lstm(
    rows: Sequence[Tensor], sizes: Sizes, weights: Sequence[Weights], reverse: Sequence[bool]
) -> tuple[Tensor, ...]:
    """Returns the states of `lstm_plain` in less time and memory, of two directions in parallel."""
    ways = list(zip(rows, weights, reverse, strict=True))
    if not fast():
        return tuple(lstm_plain(x, sizes, way, back)[0] for x, way, back in ways)
    if rows[0].is_cuda and sizes:
        return tuple(lstm_library(x, sizes, way, back) for x, way, back in ways)
    # Autocast would choose a type for each multiplication; in-place steps need one type for all.
    with torch.autocast(rows[0].device.type, enabled=False):
        tensors = [tensor for x, way, _ in ways for tensor in (x.to(way.w.dtype), *way)]
        states: tuple[Tensor, ...] = FusedLSTM.apply(sizes, tuple(reverse), *tensors)  # type: ignore[no-untyped-call]
    return states


class FusedLSTM(torch.autograd.Function):
    """All steps of one or two directions as one node of the graph, two in parallel.

    Each weight gradient is one large multiplication, where autograd would make one for every step.
    """

    @staticmethod
    def forward(
        ctx: Any, sizes: Sizes, reverse: tuple[bool, ...], *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        def run(side: int) -> tuple[Tensor, Tensor, Tensor]:
            rows, w, u, b = tensors[4 * side : 4 * side + 4]
            return run_steps(torch.addmm(b, rows, w.T), sizes, adder(u), reverse[side])

        saved = run_both(run, tensors[0].device) if len(reverse) == 2 else (run(0),)
        ctx.save_for_backward(*tensors, *(tensor for side in saved for tensor in side))
        ctx.sizes, ctx.reverse = sizes, reverse
        return tuple(states for _, _, states in saved)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        tensors, sides = ctx.saved_tensors, len(ctx.reverse)

        def run(side: int) -> tuple[Tensor | None, ...]:
            own, after = slice(4 * side, 4 * side + 4), 4 * sides + 3 * side
            rows, w, u, _ = tensors[own]
            activations, cells, states = tensors[after : after + 3]
            reverse = ctx.reverse[side]
            gates = run_backward(grads[side], ctx.sizes, u, activations, cells, reverse)
            need_rows, need_w, need_u, need_b = ctx.needs_input_grad[2:][own]
            return (
                gates @ w if need_rows else None,
                gates.T @ rows if need_w else None,
                gates.T @ previous_rows(states, ctx.sizes, reverse) if need_u else None,
                gates.sum(dim=0) if need_b else None,
            )

        gradients = run_both(run, tensors[0].device) if sides == 2 else (run(0),)
        return (None, None, *(gradient for side in gradients for gradient in side))


def previous_rows(rows: Tensor, sizes: Sizes, reverse: bool) -> Tensor:
    """Returns the row of the token before each row (in reverse after it), or zeros."""
    steps = [(slice(0, 0), 0), *steps_of(sizes, reverse)]  # no rows before the first step
    before = [
        functional.pad(rows[last][:size], (0, 0, 0, max(0, size - last_size)))
        for (last, last_size), (_, size) in pairwise(steps)
    ]
    return torch.cat([rows[:0], *(before[::-1] if reverse else before)])  # (rows, dim)


AddProduct = Callable[[Tensor, Tensor], object]  # (gates, states): gates += states U^T, in place


def adder(u: Tensor) -> AddProduct:
    """Returns the function that adds states U^T, for u (4 hidden, hidden)."""
    transposed = u.T.contiguous()
    return lambda gates, states: gates.addmm_(states, transposed)


def run_steps(
    gates: Tensor, sizes: Sizes, add_product: AddProduct, reverse: bool, out: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Runs all steps on W x + b (rows, 4 hidden); returns activated gates, cells and states.

    The gates are overwritten; the states (rows, hidden) are written to `out`, where it is given.
    """
    hidden = gates.shape[1] // 4
    cells = gates.new_empty(len(gates), hidden)
    states = gates.new_empty(len(gates), hidden) if out is None else out
    last, last_size = slice(0, 0), 0  # of the previous step; sentences that start now have none
    for now, size in steps_of(sizes, reverse):
        shared = min(size, last_size)
        first, last = slice(now.start, now.start + shared), slice(last.start, last.start + shared)
        add_product(gates[first], states[last])
        gates[now, : 3 * hidden].sigmoid_()
        gates[now, 3 * hidden :].tanh_()
        i, f, o, g = gates[now].chunk(4, dim=1)
        torch.mul(i, g, out=cells[now])
        cells[first].addcmul_(f[:shared], cells[last])
        torch.mul(o, cells[now].tanh(), out=states[now])
        last, last_size = now, size
    return gates, cells, states


#: grad * s (1 - s) and grad * (1 - t^2), each in one pass
sigmoid_backward = torch.ops.aten.sigmoid_backward
tanh_backward = torch.ops.aten.tanh_backward


def run_backward(
    grad_states: Tensor, sizes: Sizes, u: Tensor, gates: Tensor, cells: Tensor, reverse: bool
) -> Tensor:
    """Returns the gradients (rows, 4 hidden) of the gates before their activations."""
    hidden = u.shape[1]
    tanh_c, last_c = cells.tanh(), previous_rows(cells, sizes, reverse)  # 2 x (rows, hidden)
    grad_gates = torch.empty_like(gates)  # (rows, 4 hidden)
    grad_h, grad_c = cells.new_zeros(2, max(sizes, default=0), hidden)
    steps = steps_of(sizes, reverse)
    for now, size in reversed(steps):
        i, f, o, g = gates[now].chunk(4, dim=1)
        d_i, d_f, d_o, d_g = grad_gates[now].chunk(4, dim=1)
        dh = grad_h[:size].add_(grad_states[now])
        dc = grad_c[:size].add_(tanh_backward(dh * o, tanh_c[now]))
        torch.mul(dh, tanh_c[now], out=d_o)
        torch.mul(dc, g, out=d_i)
        torch.mul(dc, last_c[now], out=d_f)
        tanh_backward.grad_input(torch.mul(dc, i, out=d_g), g, grad_input=d_g)
        # The three sigmoids are adjacent: their derivatives are taken at once.
        sigmoids = grad_gates[now, : 3 * hidden]
        sigmoid_backward.grad_input(sigmoids, gates[now, : 3 * hidden], grad_input=sigmoids)
        if now != steps[0][0]:
            dc.mul_(f)
            torch.mm(grad_gates[now], u, out=grad_h[:size])
    return grad_gates


def lstm_library(rows: Tensor, sizes: Sizes, weights: Weights, reverse: bool) -> Tensor:
    """Returns the same states from PyTorch's kernel, which on CUDA is cuDNN's.

    It runs forward only: in reverse, every sentence is reversed and its states again.
    """
    reversal = _reversal_index(sizes, rows.device) if reverse else slice(None)
    ordered = [torch_gate_order(weight) for weight in weights]
    ordered.append(torch.zeros_like(weights.b))  # torch has a second bias
    start = rows.new_zeros(1, sizes[0], weights.u.shape[1])
    # cuDNN differentiates only a call that is marked as training, whichever tensor is trained.
    trains = torch.is_grad_enabled() and any(t.requires_grad for t in (rows, *weights))
    states: Tensor = torch.lstm(
        rows[reversal], torch.tensor(sizes), (start, start), ordered, True, 1, 0.0, trains, False
    )[0]
    return states[reversal]


def torch_gate_order(weights: Tensor) -> Tensor:
    """Returns weights whose parts are i, f, o, g in torch's order i, f, g, o."""
    i, f, o, g = weights.chunk(4)
    return torch.cat([i, f, g, o])


def _reversal_index(sizes: Sizes, device: torch.device) -> Tensor:
    """Returns (rows,): the row as far from the end of its sentence as this one from the start."""
    counts = torch.tensor(sizes, device=device)  # (steps,)
    starts = counts.cumsum(0) - counts  # (steps,)
    step = torch.arange(len(sizes), device=device).repeat_interleave(counts)  # (rows,)
    rank = torch.arange(len(step), device=device) - starts[step]  # (rows,): of the sentence
    lengths = torch.bincount(rank)  # (sentences,)
    return starts[lengths[rank] - 1 - step] + rank
