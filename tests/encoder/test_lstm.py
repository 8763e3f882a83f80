"""The fused LSTM against the plain one, against PyTorch's, and its initialization."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from genpool.encoder import BiLSTMEncoder, LSTMEncoder
from genpool.encoder.lstm import LSTMDirection, Weights, lstm, lstm_library, lstm_plain

from . import reference
from .cases import INPUT_DIM, bilstm_layers, direction, four_parts, lively, lstm_layers, to_numpy

#: sizes of the steps (sentences still going on), input width, hidden width
SHAPES = {
    "one row": ((1,), 3, 2),
    "one sentence": ((1, 1, 1, 1, 1), 3, 2),
    "many": ((6, 6, 4, 3, 3, 1, 1), 5, 4),
    "equal lengths": ((4, 4, 4), 3, 3),
    "widths of 1": ((3, 2, 1), 1, 1),
}
BOTH_WAYS = pytest.mark.parametrize("reverse", [False, True], ids=["forward", "backward"])
ALL_SHAPES = pytest.mark.parametrize("shape", SHAPES)
NAMES = ("rows", "w", "u", "b")


def plain_states(*arguments: Any) -> Tensor:
    return lstm_plain(*arguments)[0]


def fused_states(rows: Tensor, sizes: tuple[int, ...], weights: Weights, reverse: bool) -> Tensor:
    return lstm([rows], sizes, [weights], [reverse])[0]


def random_tensors(
    shape: str, dtype: torch.dtype = torch.float64
) -> tuple[tuple[int, ...], Tensor, Weights, Tensor]:
    """Sizes, rows, weights, and a factor for every value of the states."""
    sizes, inputs, hidden = SHAPES[shape]
    random = torch.Generator().manual_seed(5)
    shapes = [(sum(sizes), inputs), (4 * hidden, inputs), (4 * hidden, hidden), (4 * hidden,)]
    tensors = [torch.randn(size, generator=random, dtype=torch.float64) for size in shapes]
    factor = torch.randn(sum(sizes), hidden, generator=random, dtype=torch.float64)
    rows, *weights = (tensor.to(dtype).requires_grad_() for tensor in tensors)
    return sizes, rows, Weights(*weights), factor.to(dtype)


def outcome(function, shape: str, dtype: torch.dtype, reverse: bool) -> list[Tensor]:
    """States, and the gradients of a weighted sum of them."""
    sizes, rows, weights, factor = random_tensors(shape, dtype)
    states = function(rows, sizes, weights, reverse)
    return [states, *torch.autograd.grad((states * factor).sum(), (rows, *weights))]


@ALL_SHAPES
@BOTH_WAYS
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)], ids=["32", "64"]
)
def test_kernels_and_plain_form_agree_in_states_and_all_gradients(
    shape: str, reverse: bool, dtype: torch.dtype, tolerance: float
) -> None:
    plain = outcome(plain_states, shape, dtype, reverse)
    for function in (fused_states, lstm_library):
        fast = outcome(function, shape, dtype, reverse)
        torch.testing.assert_close(fast, plain, rtol=tolerance, atol=tolerance)


@ALL_SHAPES
@BOTH_WAYS
def test_fused_gradients_are_those_of_finite_differences(shape: str, reverse: bool) -> None:
    sizes, rows, weights, _ = random_tensors(shape)
    assert torch.autograd.gradcheck(
        lambda rows, *weights: fused_states(rows, sizes, Weights(*weights), reverse),
        (rows, *weights),
    )


@BOTH_WAYS
@pytest.mark.parametrize("function", [fused_states, plain_states])
def test_states_are_those_of_the_cell_equations(function, reverse: bool) -> None:
    sizes, rows, weights, _ = random_tensors("many")
    states = to_numpy(function(rows, sizes, weights, reverse))
    first_rows = np.concatenate([[0], np.cumsum(sizes)])
    for sentence in range(sizes[0]):
        length = sum(size > sentence for size in sizes)
        places = [first_rows[step] + sentence for step in range(length)]
        inputs = to_numpy(rows)[places]
        expected, _ = reference.lstm_layer(inputs, four_parts(*weights), backwards=reverse)
        np.testing.assert_allclose(states[places], expected, rtol=0, atol=1e-12)
    assert function(rows[:0], (), weights, reverse).shape == (0, 4)


@pytest.mark.parametrize("wanted", NAMES)
@BOTH_WAYS
def test_each_gradient_can_be_asked_for_alone(wanted: str, reverse: bool) -> None:
    place = NAMES.index(wanted)
    expected = outcome(plain_states, "many", torch.float64, reverse)[1 + place]
    sizes, rows, weights, factor = random_tensors("many")
    tensors = (rows, *weights)
    copies = [tensor.detach().clone() for tensor in tensors]
    for name, tensor in zip(NAMES, tensors, strict=True):
        tensor.requires_grad_(name == wanted)
    loss = (fused_states(rows, sizes, weights, reverse) * factor).sum()
    (once,) = torch.autograd.grad(loss, tensors[place], retain_graph=True)
    loss.backward()  # a second backward pass
    torch.testing.assert_close(once, expected, rtol=0, atol=1e-10)
    assert torch.equal(tensors[place].grad, once)  # type: ignore[arg-type]
    assert sum(tensor.grad is not None for tensor in tensors) == 1
    assert all(map(torch.equal, tensors, copies))


@BOTH_WAYS
def test_gradient_of_a_plain_sum_and_none_of_a_gradient(reverse: bool) -> None:
    # The gradient of a sum is one value repeated many times, in memory too.
    sizes, rows, weights, _ = random_tensors("many")
    tensors = (rows, *weights)
    fused = torch.autograd.grad(fused_states(rows, sizes, weights, reverse).sum(), tensors)
    plain = torch.autograd.grad(plain_states(rows, sizes, weights, reverse).sum(), tensors)
    torch.testing.assert_close(fused, plain, rtol=0, atol=1e-10)
    with pytest.raises(RuntimeError):  # refused rather than wrong
        states = fused_states(rows, sizes, weights, reverse)
        grad, *_ = torch.autograd.grad(states.sum(), tensors, create_graph=True)
        torch.autograd.grad(grad.square().sum(), tensors)


@pytest.mark.parametrize(
    ("with_gradient", "recording", "trains"),
    [("rows", True, True), ("b", True, True), ("", True, False), ("w", False, False)],
)
def test_library_is_told_that_it_trains_where_any_gradient_will_be_taken(
    with_gradient: str, recording: bool, trains: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # cuDNN refuses the backward pass of a call that was not marked as training. Frozen vectors
    # without a character CNN need no gradient, but the weights of the LSTM do.
    sizes, rows, weights, _ = random_tensors("many")
    for name, tensor in zip(NAMES, (rows, *weights), strict=True):
        tensor.requires_grad_(name == with_gradient)
    original, marked = torch.lstm, []

    def library(*arguments: Any) -> Any:
        marked.append(arguments[7])
        return original(*arguments)

    monkeypatch.setattr(torch, "lstm", library)
    with torch.set_grad_enabled(recording):
        lstm_library(rows, sizes, weights, True)
    assert marked == [trains]


# --- Against PyTorch's modules --------------------------------------------------------------------


def copy_weights(target: nn.LSTM, name: str, module: LSTMDirection) -> None:
    """w, u, b in PyTorch's order of the parts, i, f, g, o, and its second bias, which is 0."""
    w, u, b = (
        torch.cat([weight.chunk(4)[part] for part in (0, 1, 3, 2)]).detach()
        for weight in module.weights
    )
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    with torch.no_grad():
        for kind, value in zip(kinds, (w, u, b, torch.zeros_like(b)), strict=True):
            getattr(target, f"{kind}_{name}").copy_(value)


@pytest.mark.parametrize(("layers", "both"), [(1, True), (3, True), (2, False)])
def test_states_are_pytorchs_with_the_same_weights(layers: int, both: bool) -> None:
    theirs = nn.LSTM(INPUT_DIM, 3, layers, batch_first=True, bidirectional=both).double()
    ours: BiLSTMEncoder | LSTMEncoder
    if both:
        ours = lively(BiLSTMEncoder(INPUT_DIM, 3, layers)).double()
        for index, layer in enumerate(bilstm_layers(ours)):
            copy_weights(theirs, f"l{index}", layer.forwards)
            copy_weights(theirs, f"l{index}_reverse", layer.backwards)
    else:
        ours = lively(LSTMEncoder(INPUT_DIM, 3, layers)).double()
        for index, one in enumerate(lstm_layers(ours)):
            copy_weights(theirs, f"l{index}", one)
    torch.manual_seed(0)
    lengths = [4, 7, 1, 7, 2]
    mask = torch.arange(7) < torch.tensor(lengths).unsqueeze(1)
    inputs = torch.randn(5, 7, INPUT_DIM, dtype=torch.float64, requires_grad=True)
    packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    expected = pad_packed_sequence(theirs(packed)[0], batch_first=True)[0]
    states = ours(inputs, mask).states
    torch.testing.assert_close(states, expected, rtol=0, atol=1e-12)
    factor = torch.randn_like(states)
    gradients = [torch.autograd.grad((one * factor).sum(), inputs)[0] for one in (states, expected)]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-12)


# --- Initial weights ------------------------------------------------------------------------------


@pytest.mark.parametrize("input_dim", [5, 7])
def test_weights_start_orthogonal_per_gate_and_biases_at_zero(input_dim: int) -> None:
    module = LSTMDirection(input_dim, 7, reverse=True)
    assert repr(module) == f"LSTMDirection({input_dim}, 7, reverse=True)"
    assert (module.b == 0).all()  # the forget gate too
    square = [module.u] if input_dim == 5 else [module.u, module.w]
    for matrix in square:
        gates = matrix.detach().view(4, 7, 7)
        for gate in gates:
            torch.testing.assert_close(gate @ gate.T, torch.eye(7), rtol=0, atol=1e-5)
        assert not any(torch.equal(gates[0], gates[other]) for other in (1, 2, 3))
    layer = bilstm_layers(BiLSTMEncoder(input_dim, 3))[0]
    assert not torch.equal(layer.forwards.u, layer.backwards.u)


def test_input_matrices_start_gaussian_with_deviation_one_hundredth() -> None:
    torch.manual_seed(0)
    w = LSTMDirection(300, 50).w.detach().double()
    # 60,000 draws: five standard errors of the deviation and of the mean.
    assert abs(w.std().item() - 0.01) < 5 * 0.01 / math.sqrt(2 * w.numel())
    assert abs(w.mean().item()) < 5 * 0.01 / math.sqrt(w.numel())
    within = [(w.abs() < k * 0.01).double().mean().item() for k in (1, 2)]
    assert within == pytest.approx([0.6827, 0.9545], abs=0.01)


def test_cell_order_is_the_documented_one() -> None:
    # Only the input gate and the candidate open: c = sigmoid(0) * tanh(1), h = sigmoid(0) tanh(c).
    module = LSTMDirection(1, 1)
    with torch.no_grad():
        module.w.copy_(torch.tensor([[0.0], [0.0], [0.0], [1.0]]))
    state = module(torch.ones(1, 1), (1,)).item()
    assert state == pytest.approx(0.5 * math.tanh(0.5 * math.tanh(1.0)), abs=1e-7)
    assert set(direction(module)) == {"i", "f", "o", "g"}
