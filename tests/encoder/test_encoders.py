"""What all encoders share: types, saving, names, and answers to bad input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import pytest
import torch

import genpool.encoder
from genpool.config import ModelSettings, from_dict
from genpool.encoder import (
    ENCODERS,
    BiLSTMEncoder,
    CNNEncoder,
    Encoded,
    Encoder,
    GRUEncoder,
    LSTMEncoder,
    ResidualStackedEncoder,
    ShortcutStackedEncoder,
    StackedBiLSTMEncoder,
)
from genpool.encoder.bilstm import BiLSTMStack
from genpool.errors import ConfigError, GenpoolError, InputError
from genpool.reproduction.encoders import (
    CAFEEncoder,
    DiSANEncoder,
    GumbelTreeEncoder,
    NSEEncoder,
    NTIEncoder,
    ReSANEncoder,
    SPINNEncoder,
    TreeCNNEncoder,
)
from genpool.saving.saved_model import PARTS
from genpool.tensors.dropout import dropout_disabled

from .cases import CASES, INPUT_DIM, MASK, learning, lively, made, references, sentences, to_numpy

EVERY = pytest.mark.parametrize("name", CASES)
#: the same classes as functions: every encoder of the package has defaults, the base class has none
MAKE: Mapping[str, Callable[..., Encoder]] = ENCODERS


def test_every_encoder_is_tested_here() -> None:
    assert {type(case.make()) for case in CASES.values()} == set(ENCODERS.values())


def test_every_encoder_of_the_core_is_exported() -> None:
    own = {cls.__name__ for name, cls in ENCODERS.items() if name not in ENCODERS.plugins}
    shared = {"ENCODERS", "Encoded", "Encoder", "register"}
    assert set(genpool.encoder.__all__) == own | shared


def test_defaults_are_those_of_the_papers() -> None:
    with torch.device("meta"):
        widths = {name: make(600).output_dim for name, make in MAKE.items()}
        depths = {
            name: len(cast(BiLSTMStack, MAKE[name](600)).layers)
            for name in ("stacked-bilstm", "shortcut-stacked", "residual-stacked", "bilstm")
        }
        assert StackedBiLSTMEncoder(600).shortcut == "direction"
    assert widths == {
        "stacked-bilstm": 600,
        "bilstm": 600,
        "shortcut-stacked": 4096,
        "residual-stacked": 1200,
        "lstm": 300,
        "gru": 300,
        "cnn": 300,
        "disan": 600,
        "bag-of-words": 600,
        "nse": 300,
        "cafe": 300,
        "resan": 600,
        "spinn": 300,
        "tree-cnn": 300,
        "nti": 300,
        "gumbel-tree": 300,
    }
    assert depths == {
        "stacked-bilstm": 3,
        "shortcut-stacked": 3,
        "residual-stacked": 3,
        "bilstm": 1,
    }


@EVERY
def test_float64_gives_float64(name: str) -> None:
    states = made(name, torch.float64)(sentences(dtype=torch.float64), MASK).states
    assert states.dtype is torch.float64 and states.isfinite().all()


@EVERY
def test_bfloat16_gives_bfloat16_near_the_equations(name: str) -> None:
    encoder, inputs = made(name, torch.bfloat16), sentences(dtype=torch.bfloat16)
    states = encoder(inputs, MASK).states
    assert states.dtype is torch.bfloat16
    expected, _ = references(name, encoder, inputs, MASK)
    # Eight bits of precision: 2^-8 of the largest number at each of a few dozen roundings.
    error = abs(to_numpy(states) - expected).max() / abs(expected).max()
    assert error < 24 * 2**-8


@EVERY
def test_bfloat16_trains(name: str) -> None:
    encoder = made(name, torch.bfloat16)
    inputs = sentences(dtype=torch.bfloat16).requires_grad_()
    encoder(inputs, MASK).states.float().square().sum().backward()
    for tensor in (inputs, *learning(name, encoder)):
        assert tensor.grad is not None
        assert tensor.grad.dtype is torch.bfloat16 and tensor.grad.isfinite().all()


@EVERY
def test_mixed_precision_runs_and_trains(name: str) -> None:
    encoder, inputs = made(name), sentences().requires_grad_()
    expected, _ = references(name, encoder, inputs, MASK)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        states = encoder(inputs, MASK).states
    assert abs(to_numpy(states) - expected).max() / abs(expected).max() < 24 * 2**-8
    states.float().square().sum().backward()
    for tensor in (inputs, *learning(name, encoder)):
        assert tensor.grad is not None and tensor.grad.isfinite().all()


@EVERY
def test_state_dict_round_trips_bit_for_bit(name: str, tmp_path) -> None:
    first, second = made(name), lively(CASES[name].make(), seed=9)
    torch.save(first.state_dict(), tmp_path / "weights")
    second.load_state_dict(torch.load(tmp_path / "weights", weights_only=True))
    for key, value in first.state_dict().items():
        assert torch.equal(value, second.state_dict()[key])
    inputs = sentences()
    assert torch.equal(first(inputs, MASK).states, second(inputs, MASK).states)


@EVERY
def test_state_dict_holds_every_parameter_and_nothing_else(name: str) -> None:
    encoder = made(name)
    assert set(encoder.state_dict()) == {key for key, _ in encoder.named_parameters()}


@EVERY
def test_training_mode_changes_nothing(name: str) -> None:
    encoder, inputs = made(name), sentences()
    evaluation = encoder.eval()(inputs, MASK).states
    if encoder.stochastic:
        with dropout_disabled():
            assert torch.equal(encoder.train()(inputs, MASK).states, evaluation)
    else:
        assert torch.equal(encoder.train()(inputs, MASK).states, evaluation)


@EVERY
def test_result_has_names(name: str) -> None:
    encoded = made(name)(sentences(), MASK)
    assert isinstance(encoded, Encoded)
    assert encoded.states is encoded[0] and encoded.gates is None


@EVERY
def test_inputs_and_mask_are_left_as_they_were(name: str) -> None:
    inputs, mask = sentences(), MASK.clone()
    copy = inputs.clone()
    made(name)(inputs, mask)
    torch.testing.assert_close(inputs, copy, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(mask, MASK)


@EVERY
def test_printed_form_names_the_widths(name: str) -> None:
    encoder = made(name)
    assert f"input_dim={INPUT_DIM}, output_dim={encoder.output_dim}" in repr(encoder)


@EVERY
def test_inputs_of_another_width_are_refused(name: str) -> None:
    with pytest.raises(InputError) as caught:
        made(name)(torch.zeros(2, 3, INPUT_DIM + 1), torch.ones(2, 3, dtype=torch.bool))
    assert "(2, 3, 5)" in str(caught.value)
    assert "(batch, time, 4)" in str(caught.value) and "input_dim=4" in str(caught.value)


@EVERY
def test_inputs_without_a_batch_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"shape \(3, 4\); expected \(batch, time, 4\)"):
        made(name)(torch.zeros(3, INPUT_DIM), torch.ones(3, dtype=torch.bool))


@pytest.mark.parametrize("shape", [(2, 4), (3, 3), (2, 3, 1), (2,)])
def test_a_mask_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError) as caught:
        made("bilstm")(torch.zeros(2, 3, INPUT_DIM), torch.ones(shape, dtype=torch.bool))
    assert str(shape) in str(caught.value) and "(2, 3)" in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_a_mask_of_another_type_is_refused(dtype: torch.dtype) -> None:
    with pytest.raises(InputError, match=rf"type {dtype}; expected torch.bool"):
        made("bilstm")(torch.zeros(2, 3, INPUT_DIM), torch.ones(2, 3, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
def test_a_mask_of_other_integers_than_0_and_1_is_refused(dtype: torch.dtype) -> None:
    with pytest.raises(InputError, match="mask"):
        made("bilstm")(torch.zeros(2, 3, INPUT_DIM), torch.full((2, 3), 2, dtype=dtype))


@pytest.mark.parametrize("mask", [[[True, True, True]], None], ids=["list", "None"])
def test_a_mask_that_is_no_tensor_is_refused(mask: object) -> None:
    with pytest.raises(InputError, match="mask"):
        made("bilstm")(torch.zeros(1, 3, INPUT_DIM), mask)


@pytest.mark.parametrize("name", [name for name in CASES if not CASES[name].make().has_gates])
def test_gates_of_an_encoder_without_any_are_refused(name: str) -> None:
    encoder = made(name)
    with pytest.raises(InputError, match=rf"{type(encoder).__name__} has no input gates"):
        encoder(sentences(), MASK, gates=True)


@pytest.mark.parametrize(
    ("make", "given"),
    [
        (lambda: StackedBiLSTMEncoder(4, hidden_dim=0), "hidden_dim is 0"),
        (lambda: StackedBiLSTMEncoder(4, hidden_dim=-3), "hidden_dim is -3"),
        (lambda: StackedBiLSTMEncoder(4, layers=0), "layers is 0"),
        (lambda: BiLSTMEncoder(4, layers=0), "layers is 0"),
        (lambda: BiLSTMEncoder(4, hidden_dim=0), "hidden_dim is 0"),
        (lambda: ResidualStackedEncoder(4, layers=-1), "layers is -1"),
        (lambda: ShortcutStackedEncoder(4, hidden_dims=()), "layers is 0"),
        (lambda: ShortcutStackedEncoder(4, hidden_dims=(2, 0)), "hidden_dim is 0"),
        (lambda: LSTMEncoder(4, layers=0), "layers is 0"),
        (lambda: GRUEncoder(4, hidden_dim=0), "hidden_dim is 0"),
        (lambda: DiSANEncoder(4, hidden_dim=0), "hidden_dim is 0"),
        (lambda: NSEEncoder(4, hidden_dim=0), "hidden_dim is 0"),
        (lambda: CAFEEncoder(4, hidden_dim=0), "hidden_dim is 0"),
        (lambda: CAFEEncoder(4, factors=0), "factors is 0"),
        (lambda: ReSANEncoder(4, hidden_dim=0), "hidden_dim is 0"),
        (lambda: SPINNEncoder(4, hidden_dim=0), "hidden_dim is 0"),
        (lambda: TreeCNNEncoder(4, maps=0), "maps is 0"),
        (lambda: NTIEncoder(4, hidden_dim=0), "hidden_dim is 0"),
        (lambda: GumbelTreeEncoder(4, hidden_dim=0), "hidden_dim is 0"),
    ],
)
def test_sizes_below_one_are_refused(make, given: str) -> None:
    with pytest.raises(
        InputError, match=rf"{given}.* expected (a whole number of 1 or more|1 to 1,000)"
    ):
        make()


@pytest.mark.parametrize(
    ("options", "named"),
    [({"maps": 0}, "maps"), ({"widths": ()}, "widths"), ({"widths": (3, 0)}, "widths")],
)
def test_wrong_sizes_of_the_cnn_are_refused_by_their_own_names(options, named: str) -> None:
    with pytest.raises(InputError, match=named):
        CNNEncoder(4, **options)


@pytest.mark.parametrize("name", ENCODERS)
def test_an_input_dim_below_one_is_refused(name: str) -> None:
    with torch.device("meta"), pytest.raises(InputError, match="input_dim"):
        MAKE[name](0)


def test_an_unknown_shortcut_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        StackedBiLSTMEncoder(4, shortcut="directions")  # type: ignore[arg-type]
    message = str(caught.value)
    assert "unknown shortcut 'directions'" in message
    assert "Did you mean 'direction'?" in message and "both, direction" in message


def test_an_unknown_encoder_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'stacked-bilstm'"):
        from_dict(ModelSettings, {"encoder": "stacked-bilstms"}, PARTS)


def test_input_errors_are_value_errors_of_genpool() -> None:
    assert issubclass(InputError, ValueError) and issubclass(InputError, GenpoolError)
