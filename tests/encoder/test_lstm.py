"""The fused LSTM against the plain one, against PyTorch's, and its initialization."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from genpool.encoder import BiLSTMEncoder, LSTMEncoder, StackedBiLSTMEncoder
from genpool.encoder import lstm as module_under_test
from genpool.encoder.fused_lstm import Weights, lstm_library
from genpool.encoder.lstm import LSTMDirection

from . import reference
from .cases import INPUT_DIM, bilstm_layers, direction, four_parts, lively, lstm_layers, to_numpy


def lstm(rows, sizes, w, u, b, reverse):
    return module_under_test.lstm(rows, sizes, Weights(w, u, b), reverse)


def lstm_plain(rows, sizes, w, u, b, reverse):
    return module_under_test.lstm_plain(rows, sizes, Weights(w, u, b), reverse)[0]


#: sizes of the steps (sentences still going on), input width, hidden width
SHAPES = {
    "one row": ((1,), 3, 2),
    "one sentence": ((1, 1, 1, 1, 1), 3, 2),
    "many": ((6, 6, 4, 3, 3, 1, 1), 5, 4),
    "equal lengths": ((4, 4, 4), 3, 3),
    "single tokens": ((5,), 3, 2),
    "hidden 1": ((3, 2, 1), 2, 1),
    "input 1": ((3, 1), 1, 3),
}
BOTH_WAYS = pytest.mark.parametrize("reverse", [False, True], ids=["forward", "backward"])
ALL_SHAPES = pytest.mark.parametrize("shape", SHAPES)


def random_tensors(
    shape: str, dtype: torch.dtype
) -> tuple[tuple[int, ...], tuple[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """Sizes, (rows, w, u, b), and a weight for every value of the states."""
    sizes, inputs, hidden = SHAPES[shape]
    random = torch.Generator().manual_seed(5)
    shapes = [(sum(sizes), inputs), (4 * hidden, inputs), (4 * hidden, hidden), (4 * hidden,)]
    tensors = [torch.randn(size, generator=random, dtype=torch.float64) for size in shapes]
    weight = torch.randn(sum(sizes), hidden, generator=random, dtype=torch.float64)
    rows, w, u, b = (tensor.to(dtype).requires_grad_() for tensor in tensors)
    return sizes, (rows, w, u, b), weight.to(dtype)


def outcome(function, shape: str, dtype: torch.dtype, reverse: bool) -> list[Tensor]:
    """States, and the gradients of a weighted sum of them."""
    sizes, (rows, w, u, b), weight = random_tensors(shape, dtype)
    states = function(rows, sizes, w, u, b, reverse)
    return [states, *torch.autograd.grad((states * weight).sum(), (rows, w, u, b))]


@ALL_SHAPES
@BOTH_WAYS
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)], ids=["32", "64"]
)
def test_fused_and_plain_agree_in_states_and_all_gradients(
    shape: str, reverse: bool, dtype: torch.dtype, tolerance: float
) -> None:
    fused, plain = (outcome(function, shape, dtype, reverse) for function in (lstm, lstm_plain))
    for one, other in zip(fused, plain, strict=True):
        assert one.dtype is dtype
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


@ALL_SHAPES
@BOTH_WAYS
def test_fused_gradients_are_those_of_finite_differences(shape: str, reverse: bool) -> None:
    sizes, tensors, _ = random_tensors(shape, torch.float64)
    assert torch.autograd.gradcheck(
        lambda rows, w, u, b: lstm(rows, sizes, w, u, b, reverse), tensors
    )


@BOTH_WAYS
@pytest.mark.parametrize("function", [lstm, lstm_plain])
def test_states_are_those_of_the_cell_equations(function, reverse: bool) -> None:
    sizes, (rows, w, u, b), _ = random_tensors("many", torch.float64)
    states = to_numpy(function(rows, sizes, w, u, b, reverse))
    parts = four_parts(w, u, b)
    first_rows = np.concatenate([[0], np.cumsum(sizes)])
    for sentence in range(sizes[0]):
        length = sum(size > sentence for size in sizes)
        places = [first_rows[step] + sentence for step in range(length)]
        expected, _ = reference.lstm_layer(to_numpy(rows)[places], parts, backwards=reverse)
        np.testing.assert_allclose(states[places], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("wanted", [0, 1, 2, 3], ids=["rows", "w", "u", "b"])
@BOTH_WAYS
def test_each_gradient_can_be_asked_for_alone(wanted: int, reverse: bool) -> None:
    expected = outcome(lstm_plain, "many", torch.float64, reverse)[1 + wanted]
    sizes, tensors, weight = random_tensors("many", torch.float64)
    for position, tensor in enumerate(tensors):
        tensor.requires_grad_(position == wanted)
    rows, w, u, b = tensors
    (lstm(rows, sizes, w, u, b, reverse) * weight).sum().backward()
    torch.testing.assert_close(tensors[wanted].grad, expected, rtol=0, atol=1e-10)
    assert all(tensor.grad is None for position, tensor in enumerate(tensors) if position != wanted)


@BOTH_WAYS
def test_gradient_of_a_plain_sum(reverse: bool) -> None:
    # The gradient of a sum is one value repeated many times, in memory too.
    sizes, tensors, _ = random_tensors("many", torch.float64)
    fused = torch.autograd.grad(lstm(tensors[0], sizes, *tensors[1:], reverse).sum(), tensors)
    plain = torch.autograd.grad(lstm_plain(tensors[0], sizes, *tensors[1:], reverse).sum(), tensors)
    for one, other in zip(fused, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@BOTH_WAYS
def test_a_second_backward_pass_gives_the_same_gradients(reverse: bool) -> None:
    sizes, tensors, weight = random_tensors("many", torch.float64)
    loss = (lstm(tensors[0], sizes, *tensors[1:], reverse) * weight).sum()
    once = torch.autograd.grad(loss, tensors, retain_graph=True)
    twice = torch.autograd.grad(loss, tensors)
    assert all(torch.equal(one, other) for one, other in zip(once, twice, strict=True))


def test_inputs_are_left_as_they_were() -> None:
    sizes, tensors, weight = random_tensors("many", torch.float64)
    copies = [tensor.detach().clone() for tensor in tensors]
    (lstm(tensors[0], sizes, *tensors[1:], True) * weight).sum().backward()
    assert all(torch.equal(tensor, copy) for tensor, copy in zip(tensors, copies, strict=True))


def test_gradient_of_a_gradient_is_refused_rather_than_wrong() -> None:
    sizes, tensors, _ = random_tensors("many", torch.float64)
    states = lstm(tensors[0], sizes, *tensors[1:], False)
    with pytest.raises(RuntimeError):
        grad, *_ = torch.autograd.grad(states.sum(), tensors, create_graph=True)
        torch.autograd.grad(grad.square().sum(), tensors)


@pytest.mark.parametrize("function", [lstm, lstm_plain])
@BOTH_WAYS
def test_no_rows_give_no_states(function, reverse: bool) -> None:
    w, u, b = torch.ones(8, 3), torch.ones(8, 2), torch.ones(8)
    assert function(torch.empty(0, 3), (), w, u, b, reverse).shape == (0, 2)


@pytest.mark.parametrize(
    ("with_gradient", "recording", "trains"),
    [("rows", True, True), ("b", True, True), ("", True, False), ("w", False, False)],
)
def test_library_is_told_that_it_trains_where_any_gradient_will_be_taken(
    with_gradient: str, recording: bool, trains: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # cuDNN refuses the backward pass of a call that was not marked as training. Frozen vectors
    # without a character CNN need no gradient, but the weights of the LSTM do.
    sizes, tensors, _ = random_tensors("many", torch.float64)
    for name, tensor in zip(("rows", "w", "u", "b"), tensors, strict=True):
        tensor.requires_grad_(name == with_gradient)
    marked = []

    def library(*arguments: Any) -> Any:
        marked.append(arguments[7])
        return original(*arguments)

    original = torch.lstm
    monkeypatch.setattr(torch, "lstm", library)
    with torch.set_grad_enabled(recording):
        lstm_library(tensors[0], sizes, Weights(*tensors[1:]), True)
    assert marked == [trains]


def as_torch(module: LSTMDirection) -> list[Tensor]:
    """w, u, b in PyTorch's order of the parts, i, f, g, o, and its second bias, which is 0."""
    w, u, b = (
        torch.cat([weight.chunk(4)[part] for part in (0, 1, 3, 2)]).detach()
        for weight in (module.w, module.u, module.b)
    )
    return [w, u, b, torch.zeros_like(b)]


def copy_weights(target: nn.LSTM, name: str, module: LSTMDirection) -> None:
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    with torch.no_grad():
        for kind, value in zip(kinds, as_torch(module), strict=True):
            getattr(target, f"{kind}_{name}").copy_(value)


def run_torch(module: nn.LSTM, inputs: Tensor, lengths: list[int]) -> Tensor:
    packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(module(packed)[0], batch_first=True)[0]


@pytest.mark.parametrize("layers", [1, 3])
def test_bilstm_is_pytorchs_with_the_same_weights(layers: int) -> None:
    ours = lively(BiLSTMEncoder(INPUT_DIM, 3, layers=layers)).double()
    theirs = nn.LSTM(INPUT_DIM, 3, layers, batch_first=True, bidirectional=True).double()
    for index, layer in enumerate(bilstm_layers(ours)):
        copy_weights(theirs, f"l{index}", layer.forwards)
        copy_weights(theirs, f"l{index}_reverse", layer.backwards)
    torch.manual_seed(0)
    lengths = [4, 7, 1, 7, 2]
    mask = torch.arange(7) < torch.tensor(lengths).unsqueeze(1)
    inputs = torch.randn(5, 7, INPUT_DIM, dtype=torch.float64, requires_grad=True)
    one, other = ours(inputs, mask).states, run_torch(theirs, inputs, lengths)
    torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
    weight = torch.randn_like(one)
    gradients = [torch.autograd.grad((states * weight).sum(), inputs)[0] for states in (one, other)]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-12)


def test_one_way_lstm_is_pytorchs_with_the_same_weights() -> None:
    ours = lively(LSTMEncoder(INPUT_DIM, 3, layers=2)).double()
    theirs = nn.LSTM(INPUT_DIM, 3, 2, batch_first=True).double()
    for index, layer in enumerate(lstm_layers(ours)):
        copy_weights(theirs, f"l{index}", layer)
    torch.manual_seed(0)
    lengths = [2, 5, 3]
    mask = torch.arange(5) < torch.tensor(lengths).unsqueeze(1)
    inputs = torch.randn(3, 5, INPUT_DIM, dtype=torch.float64)
    expected = run_torch(theirs, inputs, lengths)
    torch.testing.assert_close(ours(inputs, mask).states, expected, rtol=0, atol=1e-12)


def test_recurrent_matrices_start_orthogonal_per_gate() -> None:
    module = LSTMDirection(5, 7)
    gates = module.u.detach().view(4, 7, 7)
    for gate in gates:
        torch.testing.assert_close(gate @ gate.T, torch.eye(7), rtol=0, atol=1e-5)
    assert not any(torch.equal(gates[0], gates[other]) for other in (1, 2, 3))


def test_biases_start_at_zero_the_forget_gate_too() -> None:
    assert (LSTMDirection(5, 7).b == 0).all()


def test_input_matrices_start_gaussian_with_deviation_one_hundredth() -> None:
    torch.manual_seed(0)
    w = LSTMDirection(300, 50).w.detach().double()
    # 60,000 draws: five standard errors of the deviation and of the mean.
    assert abs(w.std().item() - 0.01) < 5 * 0.01 / math.sqrt(2 * w.numel())
    assert abs(w.mean().item()) < 5 * 0.01 / math.sqrt(w.numel())
    within = [(w.abs() < k * 0.01).double().mean().item() for k in (1, 2)]
    assert within == pytest.approx([0.6827, 0.9545], abs=0.01)


def test_square_input_matrices_start_orthogonal_per_gate() -> None:
    module = LSTMDirection(6, 6)
    for gate in module.w.detach().view(4, 6, 6):
        torch.testing.assert_close(gate @ gate.T, torch.eye(6), rtol=0, atol=1e-5)


def test_every_direction_of_a_stack_starts_this_way() -> None:
    encoder = StackedBiLSTMEncoder(6, 6, layers=2)
    modules = [module for module in encoder.modules() if isinstance(module, LSTMDirection)]
    assert len(modules) == 4
    for index, module in enumerate(modules):
        gate = module.u.detach()[:6]
        torch.testing.assert_close(gate @ gate.T, torch.eye(6), rtol=0, atol=1e-5)
        # Layer 1 maps 6 inputs to 6 states: square. Layer 2 has 12 inputs.
        assert module.w.shape == ((24, 6) if index < 2 else (24, 12))
        assert (module.w.abs().max() > 0.1) == (index < 2)


def test_directions_start_with_weights_of_their_own() -> None:
    layer = bilstm_layers(BiLSTMEncoder(4, 3))[0]
    assert not torch.equal(layer.forwards.w, layer.backwards.w)
    assert not torch.equal(layer.forwards.u, layer.backwards.u)


def test_printed_form_names_sizes_and_direction() -> None:
    assert repr(LSTMDirection(4, 3, reverse=True)) == "LSTMDirection(4, 3, reverse=True)"


def test_cell_order_is_the_documented_one() -> None:
    # Only the input gate and the candidate open: c = sigmoid(0) * tanh(1), h = sigmoid(0) tanh(c).
    module = LSTMDirection(1, 1)
    with torch.no_grad():
        module.w.copy_(torch.tensor([[0.0], [0.0], [0.0], [1.0]]))
    state = module(torch.ones(1, 1), (1,)).item()
    assert state == pytest.approx(0.5 * math.tanh(0.5 * math.tanh(1.0)), abs=1e-7)
    assert set(direction(module)) == {"i", "f", "o", "g"}
