"""Every encoder against its equations in NumPy, in any batch, with gradients and in every type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import functional_call

import genpool.encoder
from genpool.config import ModelSettings, from_dict
from genpool.encoder import (
    ENCODERS,
    BiLSTMEncoder,
    CNNEncoder,
    Encoder,
    GRUEncoder,
    LSTMEncoder,
    ResidualStackedEncoder,
    ShortcutStackedEncoder,
    StackedBiLSTMEncoder,
)
from genpool.encoder.lstm import BiLSTMStack
from genpool.errors import ConfigError, InputError
from genpool.reproduction.encoders import CAFEEncoder, NSEEncoder, TreeCNNEncoder
from genpool.saving.saved_model import PARTS
from genpool.tensors.modules import dropout_disabled

from .cases import (
    CASES,
    GARBAGE,
    INPUT_DIM,
    MASK,
    learning,
    lively,
    made,
    references,
    sentences,
    to_numpy,
)

EVERY = pytest.mark.parametrize("name", CASES)
TOLERANCE = 1e-6
#: the same classes as functions: every encoder of the package has defaults, the base class has none
MAKE: Mapping[str, Callable[..., Encoder]] = ENCODERS


# --- The equations --------------------------------------------------------------------------------


@EVERY
def test_states_are_those_of_the_equations_and_exactly_zero_at_padding(name: str) -> None:
    encoder, inputs = made(name, torch.float64), sentences(dtype=torch.float64)
    states, gates = encoder(inputs, MASK)
    expected, expected_gates = references(name, encoder, inputs, MASK)
    assert states.dtype is torch.float64 and gates is None
    assert states.shape == (*MASK.shape, encoder.output_dim)
    np.testing.assert_allclose(to_numpy(states), expected, rtol=0, atol=1e-12)
    assert np.abs(expected).max() > 0.1  # the comparison is of numbers, not of zeros
    assert (states[~MASK] == 0).all() and (states[MASK] != 0).any(dim=-1).all()
    single = made(name)(sentences(), MASK).states
    np.testing.assert_allclose(to_numpy(single), expected, rtol=0, atol=1e-5)
    if encoder.has_gates:  # the input gates of the top layer
        same, gates = encoder(inputs, MASK, gates=True)
        assert torch.equal(same, states)
        np.testing.assert_allclose(to_numpy(gates), expected_gates, rtol=0, atol=1e-12)
        assert (gates[MASK] > 0).all() and (gates[MASK] < 1).all() and (gates[~MASK] == 0).all()


@EVERY
def test_bidirectional_says_which_half_of_which_token_has_seen_the_whole_sentence(
    name: str,
) -> None:
    # Last pooling takes the forward half of the last token and the backward half of the first.
    encoder, mask = made(name), torch.ones(1, 9, dtype=torch.bool)
    half = encoder.output_dim // 2
    inputs = sentences(mask).requires_grad_()
    first, last = encoder(inputs, mask).states[0, [0, 8]]

    def seen(number: Tensor) -> list[bool]:
        (gradient,) = torch.autograd.grad(number, inputs, retain_graph=True)
        return (gradient[0] != 0).any(dim=-1).tolist()

    if encoder.bidirectional:
        assert all(seen(last[:half].sum())) and all(seen(first[half:].sum()))
    elif name.split(",")[0] in ("nse", "cafe"):  # by attention every token sees all
        assert all(seen(first.sum())) and all(seen(last.sum()))
    elif not encoder.has_extra_loss:  # whose hard choices decide what a token sees
        assert not all(seen(first.sum()))


# --- Gradients against finite differences ---------------------------------------------------------

SMALL_MASK = torch.tensor([[1, 1, 1], [0, 1, 0], [0, 0, 0], [1, 0, 1]]).bool()


@EVERY
def test_gradients_of_token_vectors_parameters_and_gates(name: str) -> None:
    encoder = made(name, torch.float64)
    generator = torch.Generator().manual_seed(3)
    vectors = torch.randn(4, 3, INPUT_DIM, generator=generator, dtype=torch.float64)
    names = [key for key, _ in encoder.named_parameters()]
    values = tuple(value.detach().clone().requires_grad_() for value in encoder.parameters())

    def states(*parameters: Tensor) -> Tensor:
        weights = dict(zip(names, parameters, strict=True))
        return functional_call(encoder, weights, (vectors, SMALL_MASK)).states

    if values:
        # Fast mode: one random direction through all values of a parameter.
        assert torch.autograd.gradcheck(states, values, fast_mode=True)
    leaves = (vectors.clone().requires_grad_(),)
    assert torch.autograd.gradcheck(lambda values: encoder(values, SMALL_MASK).states, leaves)
    if encoder.has_gates:
        assert torch.autograd.gradcheck(
            lambda values: encoder(values, SMALL_MASK, gates=True).gates, leaves
        )


# --- The same states alone, in any batch, with any padding ----------------------------------------


def alone(encoder: Encoder, inputs: Tensor, mask: Tensor, row: int) -> Tensor:
    """The states of one sentence of a batch, encoded without padding: (tokens, output_dim)."""
    tokens = inputs[row, mask[row]].unsqueeze(0)  # (1, tokens, input_dim)
    return encoder(tokens, torch.ones(tokens.shape[:2], dtype=torch.bool)).states[0]


@EVERY
def test_same_states_alone_in_a_batch_and_beside_a_much_longer_sentence(name: str) -> None:
    encoder = made(name)
    long = torch.zeros(4, 60, dtype=torch.bool)
    long[0, :4], long[1, :], long[2, 50:], long[3, 20:25] = True, True, True, True
    for mask in (MASK, long):
        inputs = sentences(mask)
        states = encoder(inputs, mask).states
        for row in mask.any(dim=1).nonzero().flatten().tolist():
            expected = alone(encoder, inputs, mask, row)
            torch.testing.assert_close(states[row, mask[row]], expected, rtol=0, atol=TOLERANCE)
        order = torch.arange(len(mask)).flip(0)
        moved = encoder(inputs[order], mask[order]).states
        torch.testing.assert_close(moved, states[order], rtol=0, atol=TOLERANCE)


@EVERY
def test_same_states_whatever_stands_at_padding(name: str) -> None:
    encoder, inputs = made(name), sentences()
    expected = encoder(torch.where(MASK.unsqueeze(-1), inputs, 0.0), MASK).states
    for number in GARBAGE:
        filled = torch.where(MASK.unsqueeze(-1), inputs, number)
        assert torch.equal(encoder(filled, MASK).states, expected)
    inputs[0, 0, 0] = float("nan")  # in a real token it spoils its own sentence only
    states = encoder(inputs, MASK).states
    assert states[0, 0].isnan().any()
    torch.testing.assert_close(states[1:], expected[1:], rtol=0, atol=TOLERANCE)


@EVERY
def test_a_sentence_without_tokens_gives_zeros_and_spoils_no_gradient(name: str) -> None:
    encoder, inputs = made(name), sentences().requires_grad_()
    states = encoder(inputs, MASK).states
    assert torch.equal(states[4], torch.zeros_like(states[4]))
    states.square().sum().backward()
    assert inputs.grad is not None
    assert (inputs.grad[~MASK] == 0).all()
    assert inputs.grad[MASK].isfinite().all() and (inputs.grad[MASK] != 0).any()
    for parameter in learning(name, encoder):
        assert parameter.grad is not None and parameter.grad.isfinite().all()
    for shape in ((3, 4), (2, 0), (0, 3)):
        mask = torch.zeros(shape, dtype=torch.bool)
        for part in encoder(sentences(mask), mask, gates=encoder.has_gates):
            assert part is None or torch.equal(part, torch.zeros(*shape, encoder.output_dim))


# --- Types, saving, modes -------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("mixed", [False, True], ids=["bfloat16", "autocast"])
def test_half_precision_is_near_the_equations_and_trains(name: str, mixed: bool) -> None:
    dtype = torch.float32 if mixed else torch.bfloat16
    encoder, inputs = made(name, dtype), sentences(dtype=dtype).requires_grad_()
    expected, _ = references(name, encoder, inputs, MASK)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=mixed):
        states = encoder(inputs, MASK).states
    assert mixed or states.dtype is torch.bfloat16
    # Eight bits of precision: 2^-8 of the largest number at each of a few dozen roundings.
    assert abs(to_numpy(states) - expected).max() / abs(expected).max() < 24 * 2**-8
    states.float().square().sum().backward()
    for tensor in (inputs, *learning(name, encoder)):
        assert tensor.grad is not None
        assert tensor.grad.dtype is dtype and tensor.grad.isfinite().all()


@EVERY
def test_weights_round_trip_and_the_mode_changes_nothing(name: str, tmp_path) -> None:
    first, second = made(name), lively(CASES[name].make(), seed=9)
    assert set(first.state_dict()) == {key for key, _ in first.named_parameters()}
    torch.save(first.state_dict(), tmp_path / "weights")
    second.load_state_dict(torch.load(tmp_path / "weights", weights_only=True))
    inputs, mask = sentences(), MASK.clone()
    copy = inputs.clone()
    states = first.eval()(inputs, mask).states
    assert torch.equal(first(inputs, mask.long()).states, states)
    assert torch.equal(states, second.eval()(inputs, mask).states)
    with dropout_disabled():
        assert torch.equal(first.train()(inputs, mask).states, states)
    if not name.startswith("gumbel"):  # draws trees in training mode
        assert torch.equal(first(inputs, mask).states, states)
    torch.testing.assert_close(inputs, copy, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(mask, MASK)
    assert f"input_dim={INPUT_DIM}, output_dim={first.output_dim}" in repr(first)


# --- Names and defaults ---------------------------------------------------------------------------


def test_every_encoder_is_exported_and_tested_here() -> None:
    own = {cls.__name__ for name, cls in ENCODERS.items() if name not in ENCODERS.plugins}
    shared = {"ENCODERS", "Encoded", "Encoder", "register"}
    assert set(genpool.encoder.__all__) == own | shared
    assert {type(case.make()) for case in CASES.values()} >= {
        cls for name, cls in ENCODERS.items() if cls.__module__.startswith("genpool.")
    }


def test_defaults_are_those_of_the_papers() -> None:
    names = "stacked-bilstm bilstm shortcut-stacked residual-stacked lstm gru cnn disan"
    names += " bag-of-words nse cafe resan spinn tree-cnn nti gumbel-tree"
    with torch.device("meta"):
        widths = [MAKE[name](600).output_dim for name in names.split()]
        depths = [len(cast(BiLSTMStack, MAKE[name](600)).layers) for name in names.split()[:4]]
        assert StackedBiLSTMEncoder(600).shortcut == "direction"
    assert widths == [600, 600, 4096, 1200, 300, 300, 300, 600, 600, 300, 300, 600, *[300] * 4]
    assert depths == [3, 1, 3, 3]


# --- Bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "mask", "parts"),
    [
        (torch.zeros(2, 3, 5), torch.ones(2, 3), ["(2, 3, 5)", "(batch, time, 4)", "input_dim=4"]),
        (torch.zeros(3, 4), torch.ones(3), ["(3, 4)", "(batch, time, 4)"]),
        (torch.zeros(2, 3, 4), torch.ones(2, 4, dtype=torch.bool), ["(2, 4)", "(2, 3)"]),
        (torch.zeros(2, 3, 4), torch.ones(2, 3), ["type torch.float32; expected torch.bool"]),
        (torch.zeros(2, 3, 4), torch.full((2, 3), 2), ["mask", "from 2 to 2"]),
        (torch.zeros(1, 3, 4), [[True, True, True]], ["mask is list"]),
    ],
)
def test_inputs_and_masks_that_do_not_fit_are_refused(inputs, mask: Any, parts: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        made("bilstm")(inputs, mask)
    assert all(part in str(caught.value) for part in parts)


def test_gates_of_an_encoder_without_any_are_refused() -> None:
    with pytest.raises(InputError, match="GRUEncoder has no input gates"):
        made("gru")(sentences(), MASK, gates=True)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: StackedBiLSTMEncoder(4, hidden_dim=-3), "hidden_dim is -3"),
        (lambda: StackedBiLSTMEncoder(4, layers=0), "layers is 0"),
        (lambda: BiLSTMEncoder(4, layers=0), "layers is 0"),
        (lambda: ResidualStackedEncoder(4, layers=-1), "layers is -1"),
        (lambda: ShortcutStackedEncoder(4, hidden_dims=()), "layers is 0"),
        (lambda: ShortcutStackedEncoder(4, hidden_dims=(2, 0)), "hidden_dim is 0"),
        (lambda: LSTMEncoder(4, layers=1001), "layers is 1001"),
        (lambda: GRUEncoder(4, hidden_dim=0), "hidden_dim is 0"),
        (lambda: CNNEncoder(4, maps=0), "maps is 0"),
        (lambda: CNNEncoder(4, widths=()), "widths is 0"),
        (lambda: CNNEncoder(4, widths=(3, 0)), "widths is 0"),
        (lambda: NSEEncoder(4, hidden_dim=0), "hidden_dim is 0"),
        (lambda: CAFEEncoder(4, factors=0), "factors is 0"),
        (lambda: TreeCNNEncoder(4, maps=0), "maps is 0"),
        *((lambda name=name: MAKE[name](0), "input_dim is 0") for name in ENCODERS),
    ],
)
def test_impossible_sizes_are_refused(make, problem: str) -> None:
    expected = "expected (a whole number of 1 or more|1 to 1,000)"
    with torch.device("meta"), pytest.raises(InputError, match=rf"{problem}; {expected}"):
        make()


def test_unknown_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"'directions'. Did you mean 'direction'\?"):
        StackedBiLSTMEncoder(4, shortcut="directions")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="Did you mean 'stacked-bilstm'"):
        from_dict(ModelSettings, {"encoder": "stacked-bilstms"}, PARTS)
