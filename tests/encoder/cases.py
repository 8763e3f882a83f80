"""One small encoder of every kind, each beside its reference, and a batch with every padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from genpool.encoder import (
    BagOfWordsEncoder,
    BiLSTMEncoder,
    CNNEncoder,
    Encoder,
    GRUEncoder,
    LSTMEncoder,
    ResidualStackedEncoder,
    ShortcutStackedEncoder,
    StackedBiLSTMEncoder,
)
from genpool.encoder.lstm import BiLSTMLayer, BiLSTMStack, LSTMDirection

from . import reference

INPUT_DIM = 4
#: values that padding may have; a layer that reads one of them cannot hide it
GARBAGE = (float("nan"), float("inf"), -1e30, 7.0)
#: padding right, left, both sides, in between; no token, one token, no padding
MASK = torch.tensor(
    [
        [1, 1, 1, 1, 0, 0, 0],
        [0, 0, 0, 0, 1, 1, 1],
        [0, 1, 1, 1, 1, 1, 0],
        [1, 0, 1, 1, 0, 0, 1],
        [0, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 1, 1, 1],
    ]
).bool()

AnyEncoder = TypeVar("AnyEncoder", bound=Encoder)


class Case(NamedTuple):
    make: Callable[[], Encoder]
    #: what `make` returns, one sentence -> states, gates (None where the encoder has none)
    expected: Callable[[Any, np.ndarray], tuple[np.ndarray, np.ndarray | None]]
    #: parameters that only decide a hard choice, and have a gradient in training mode alone
    choosing: tuple[str, ...] = ()


def to_numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


def four_parts(w: Tensor, u: Tensor, b: Tensor) -> reference.Direction:
    """The documented order of the four parts in each matrix: i, f, o, g."""
    parts, hidden = {}, u.shape[1]
    for place, name in enumerate("ifog"):
        rows = slice(place * hidden, (place + 1) * hidden)
        parts[name] = (to_numpy(w[rows]), to_numpy(u[rows]), to_numpy(b[rows]))
    return parts


def direction(module: LSTMDirection) -> reference.Direction:
    return four_parts(module.w, module.u, module.b)


def bilstm_layers(encoder: BiLSTMStack) -> list[BiLSTMLayer]:
    return [cast(BiLSTMLayer, layer) for layer in encoder.layers]


def lstm_layers(encoder: LSTMEncoder) -> list[LSTMDirection]:
    return [cast(LSTMDirection, layer) for layer in encoder.layers]


def layers(encoder: BiLSTMStack) -> list[tuple[reference.Direction, reference.Direction]]:
    return [
        (direction(layer.forwards), direction(layer.backwards)) for layer in bilstm_layers(encoder)
    ]


def _by_direction(encoder: BiLSTMStack, sentence: np.ndarray):
    return reference.stacked_by_direction(sentence, layers(encoder))


def _stack(given):
    return lambda encoder, sentence: reference.stack(sentence, layers(encoder), given)


def _lstm(encoder: LSTMEncoder, sentence: np.ndarray):
    return reference.one_way_lstm(sentence, [direction(layer) for layer in lstm_layers(encoder)])


def _gru(encoder: GRUEncoder, sentence: np.ndarray):
    states, hidden = sentence, encoder.output_dim
    for layer in range(encoder.gru.num_layers):
        weights = [
            to_numpy(getattr(encoder.gru, f"{name}_l{layer}"))
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ]
        parts = {
            name: tuple(weight[place * hidden : (place + 1) * hidden] for weight in weights)
            for place, name in enumerate("rzn")
        }
        states = reference.gru_layer(states, parts)
    return states, None


def _cnn(encoder: CNNEncoder, sentence: np.ndarray):
    convolutions = [cast(nn.Conv1d, convolution) for convolution in encoder.filters]
    filters = [
        (to_numpy(convolution.weight), to_numpy(cast(Tensor, convolution.bias)))
        for convolution in convolutions
    ]
    return reference.cnn(sentence, filters), None


CASES: dict[str, Case] = {
    "stacked-bilstm, direction": Case(
        lambda: StackedBiLSTMEncoder(INPUT_DIM, 3, layers=3, shortcut="direction"), _by_direction
    ),
    "stacked-bilstm, both": Case(
        lambda: StackedBiLSTMEncoder(INPUT_DIM, 3, layers=3, shortcut="both"),
        _stack(reference.given_released),
    ),
    "stacked-bilstm, one layer": Case(
        lambda: StackedBiLSTMEncoder(INPUT_DIM, 2, layers=1), _by_direction
    ),
    "bilstm": Case(lambda: BiLSTMEncoder(INPUT_DIM, 3, layers=2), _stack(reference.given_plain)),
    "shortcut-stacked": Case(
        lambda: ShortcutStackedEncoder(INPUT_DIM, (2, 3, 1)), _stack(reference.given_shortcuts)
    ),
    "residual-stacked": Case(
        lambda: ResidualStackedEncoder(INPUT_DIM, 2, layers=4), _stack(reference.given_residuals)
    ),
    "lstm": Case(lambda: LSTMEncoder(INPUT_DIM, 3, layers=2), _lstm),
    "gru": Case(lambda: GRUEncoder(INPUT_DIM, 3, layers=2), _gru),
    "cnn": Case(lambda: CNNEncoder(INPUT_DIM, maps=2, widths=(1, 2, 3, 4, 5)), _cnn),
    "bag-of-words": Case(
        lambda: BagOfWordsEncoder(INPUT_DIM), lambda _, sentence: (sentence, None)
    ),
}


def lively(encoder: AnyEncoder, seed: int = 0) -> AnyEncoder:
    """The same encoder with weights and biases large enough to tell right from wrong."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.copy_(torch.rand(parameter.shape, generator=generator).sub(0.5))
    return encoder


def made(name: str, dtype: torch.dtype = torch.float32) -> Encoder:
    return lively(CASES[name].make()).to(dtype)


def learning(name: str, encoder: Encoder) -> list[Tensor]:
    """The parameters that have a gradient."""
    choosing = CASES[name].choosing
    return [tensor for key, tensor in encoder.named_parameters() if key not in choosing]


def sentences(mask: Tensor = MASK, dtype: torch.dtype = torch.float32, seed: int = 1) -> Tensor:
    """Random token vectors (batch, time, INPUT_DIM), garbage wherever the mask is False."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(*mask.shape, INPUT_DIM, generator=generator, dtype=torch.float64)
    padding = int((~mask).sum()) * INPUT_DIM
    garbage = torch.tensor([GARBAGE[number % len(GARBAGE)] for number in range(padding)])
    inputs[~mask] = garbage.view(-1, INPUT_DIM).double()
    return inputs.to(dtype)


def references(name: str, encoder: Encoder, inputs: Tensor, mask: Tensor):
    """The reference's states and gates of a batch, zeros at padding: one sentence at a time."""
    batch, time = mask.shape
    states = np.zeros((batch, time, encoder.output_dim))
    gates = np.zeros((batch, time, encoder.output_dim))
    for row in range(batch):
        places = [t for t in range(time) if mask[row, t]]
        if places:
            actual = CASES[name].expected(encoder, to_numpy(inputs[row, places]))
            states[row, places] = actual[0]
            gates[row, places] = 0 if actual[1] is None else actual[1]
    return states, gates
