"""The encoders' equations for one sentence, in NumPy and token by token.

A sentence is an array (tokens, input_dim) without any padding. An LSTM direction is a dictionary
from the name of a part ("i", "f", "o", "g") to its (W, U, b).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Part = tuple[np.ndarray, np.ndarray, np.ndarray]
Direction = dict[str, Part]


def sigmoid(value: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-value))


def lstm_cell(
    x: np.ndarray, h: np.ndarray, c: np.ndarray, direction: Direction
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(new h, new c, input gate) of one token."""
    logits = {name: w @ x + u @ h + b for name, (w, u, b) in direction.items()}
    input_gate = sigmoid(logits["i"])
    new_c = sigmoid(logits["f"]) * c + input_gate * np.tanh(logits["g"])
    return sigmoid(logits["o"]) * np.tanh(new_c), new_c, input_gate


def lstm_layer(
    sentence: np.ndarray, direction: Direction, backwards: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """States and input gates, both (tokens, hidden), each at the place of its token."""
    tokens, hidden = len(sentence), len(direction["i"][2])
    states, gates = np.zeros((tokens, hidden)), np.zeros((tokens, hidden))
    h = c = np.zeros(hidden)
    for t in range(tokens - 1, -1, -1) if backwards else range(tokens):
        h, c, gates[t] = lstm_cell(sentence[t], h, c, direction)
        states[t] = h
    return states, gates


def both_directions(
    onward: np.ndarray, back: np.ndarray, layer: tuple[Direction, Direction]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forward states, backward states, and the gates of both side by side."""
    forward_states, forward_gates = lstm_layer(onward, layer[0])
    backward_states, backward_gates = lstm_layer(back, layer[1], backwards=True)
    return forward_states, backward_states, np.hstack([forward_gates, backward_gates])


def one_way_lstm(
    sentence: np.ndarray, directions: Sequence[Direction]
) -> tuple[np.ndarray, np.ndarray]:
    states, gates = sentence, sentence
    for direction in directions:
        states, gates = lstm_layer(states, direction)
    return states, gates


def stacked_by_direction(
    sentence: np.ndarray, layers: Sequence[tuple[Direction, Direction]]
) -> tuple[np.ndarray, np.ndarray]:
    """The paper's Eq. 1-3: each direction is given [e ; its own direction's states]."""
    onward, back, gates = both_directions(sentence, sentence, layers[0])
    for layer in layers[1:]:
        onward, back, gates = both_directions(
            np.hstack([sentence, onward]), np.hstack([sentence, back]), layer
        )
    return np.hstack([onward, back]), gates


def stack(
    sentence: np.ndarray,
    layers: Sequence[tuple[Direction, Direction]],
    given: Callable[[np.ndarray, list[np.ndarray]], np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """A stack whose directions see the same: given(e, [h^1, ..., h^{l-1}]) is layer l's input."""
    below: list[np.ndarray] = []
    gates = sentence
    for layer in layers:
        rows = given(sentence, below) if below else sentence
        onward, back, gates = both_directions(rows, rows, layer)
        below.append(np.hstack([onward, back]))
    return below[-1], gates


def given_released(e: np.ndarray, below: list[np.ndarray]) -> np.ndarray:
    """The released program: [e ; both directions' states of the layer below]."""
    return np.hstack([e, below[-1]])


def given_plain(e: np.ndarray, below: list[np.ndarray]) -> np.ndarray:
    return below[-1]


def given_shortcuts(e: np.ndarray, below: list[np.ndarray]) -> np.ndarray:
    """Nie & Bansal: [e ; h^1 ; ... ; h^{l-1}]."""
    return np.hstack([e, *below])


def given_residuals(e: np.ndarray, below: list[np.ndarray]) -> np.ndarray:
    """Nie & Bansal: x_2 = [e ; h^1], x_3 = [e ; h^1 + h^2]."""
    total = np.zeros_like(below[0])
    for states in below:
        total = total + states
    return np.hstack([e, total])


def gru_layer(sentence: np.ndarray, parts: dict[str, tuple[np.ndarray, ...]]) -> np.ndarray:
    """r and z are the reset and update gates, n the candidate; each part is (W, U, b_w, b_u).

    h_t = (1 - z) n + z h_{t-1}, with n = tanh(W x + b_w + r (U h_{t-1} + b_u)).
    """
    h = np.zeros(len(parts["r"][2]))
    states = []
    for x in sentence:
        seen = {name: w @ x + b for name, (w, _, b, _) in parts.items()}
        kept = {name: u @ h + b for name, (_, u, _, b) in parts.items()}
        reset, update = sigmoid(seen["r"] + kept["r"]), sigmoid(seen["z"] + kept["z"])
        candidate = np.tanh(seen["n"] + reset * kept["n"])
        h = (1 - update) * candidate + update * h
        states.append(h)
    return np.array(states).reshape(len(sentence), len(h))


def cnn(sentence: np.ndarray, filters: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """ReLU(sum over a window + b); filters: (maps, input_dim, width) and (maps,).

    A window of width w begins (w - 1) // 2 tokens before its token; beyond the ends is nothing.
    """
    states = []
    for t in range(len(sentence)):
        state = []
        for weight, bias in filters:
            maps, _, width = weight.shape
            first = t - (width - 1) // 2
            for map_number in range(maps):
                total = bias[map_number]
                for offset in range(width):
                    if 0 <= first + offset < len(sentence):
                        total = total + weight[map_number, :, offset] @ sentence[first + offset]
                state.append(max(total, 0.0))
        states.append(state)
    maps = sum(len(bias) for _, bias in filters)
    return np.array(states).reshape(len(sentence), maps)
