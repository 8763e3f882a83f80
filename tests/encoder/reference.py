"""The encoders' equations for one sentence, in NumPy and token by token.

A sentence is an array (tokens, input_dim) without any padding. An LSTM direction is a dictionary
from the name of a part ("i", "f", "o", "g") to its (W, U, b).
"""

from __future__ import annotations

import math
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


def directional_attention(
    sentence: np.ndarray, weights: dict[str, np.ndarray], backwards: bool
) -> np.ndarray:
    """One direction of DiSAN, dimension by dimension; weights by their names in FACTS.md's lines.

    m = elu(W x + b); logits_ij = 5 tanh((W1 m_j + W2 m_i + b_logits) / 5); softmax over the j
    before i (after i, backwards); f = sigmoid(W3 m + W4 s + b_gate); out = f m + (1 - f) s.
    """
    linear = [weights["W"] @ x + weights["b"] for x in sentence]
    m = [np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1) for x in linear]
    dim = len(weights["b"])
    out = np.zeros((len(sentence), dim))
    for i in range(len(sentence)):
        seen = range(i + 1, len(sentence)) if backwards else range(i)
        s = np.zeros(dim)
        for k in range(dim):
            logits = [
                5
                * math.tanh(
                    (weights["W1"][k] @ m[j] + weights["W2"][k] @ m[i] + weights["b_logits"][k]) / 5
                )
                for j in seen
            ]
            total = sum(math.exp(logit) for logit in logits)
            for j, logit in zip(seen, logits, strict=True):
                s[k] += math.exp(logit) / total * m[j][k]
        f = sigmoid(weights["W3"] @ m[i] + weights["W4"] @ s + weights["b_gate"])
        out[i] = f * m[i] + (1 - f) * s
    return out


def softmax(scores: Sequence[float]) -> list[float]:
    powers = [math.exp(score - max(scores)) for score in scores]
    return [power / sum(powers) for power in powers]


def elu(value: np.ndarray) -> np.ndarray:
    return np.where(value > 0, value, np.exp(np.minimum(value, 0)) - 1)


def nse(
    words: np.ndarray, read: Direction, compose: tuple[np.ndarray, np.ndarray], write: Direction
) -> np.ndarray:
    """The memory is a list of vectors that each step reads, then writes, slot by slot."""
    memory = [word.copy() for word in words]
    hidden = len(read["i"][2])
    read_h = read_c = write_h = write_c = np.zeros(hidden)
    states = []
    for word in words:
        read_h, read_c, _ = lstm_cell(word, read_h, read_c, read)
        weights = softmax([float(slot @ read_h) for slot in memory])
        remembered = sum(
            (weight * slot for weight, slot in zip(weights, memory, strict=True)), np.zeros(hidden)
        )
        composed = compose[0] @ np.concatenate([read_h, remembered]) + compose[1]
        write_h, write_c, _ = lstm_cell(composed, write_h, write_c, write)
        for place, weight in enumerate(weights):
            memory[place] = (1 - weight) * memory[place] + weight * write_h
        states.append(write_h)
    return np.array(states)


def highway(x: np.ndarray, weights: dict[str, np.ndarray]) -> np.ndarray:
    gate = sigmoid(weights["W_T"] @ x + weights["b_T"])
    return gate * np.maximum(weights["W_H"] @ x + weights["b_H"], 0) + (1 - gate) * x


def factorization_machine(u: np.ndarray, weights: dict[str, np.ndarray]) -> float:
    """w_0 + w . u + sum over pairs i < j of (v_i . v_j) u_i u_j, pair by pair."""
    total = float(weights["w_0"]) + float(weights["w"] @ u)
    for i in range(len(u)):
        for j in range(i + 1, len(u)):
            total += float(weights["v"][i] @ weights["v"][j]) * u[i] * u[j]
    return total


def cafe(
    words: np.ndarray,
    highways: Sequence[dict[str, np.ndarray]],
    key: tuple[np.ndarray, np.ndarray],
    machines: Sequence[dict[str, np.ndarray]],
    direction: Direction,
) -> np.ndarray:
    """machines: of [x ; x'], x - x' and x * x'."""
    x = list(words)
    for layer in highways:
        x = [highway(word, layer) for word in x]
    keys = [np.maximum(key[0] @ word + key[1], 0) for word in x]
    rows = []
    for i in range(len(x)):
        weights = softmax([float(keys[i] @ other) for other in keys])
        aligned = sum(
            (weight * word for weight, word in zip(weights, x, strict=True)), np.zeros_like(x[i])
        )
        features = [
            factorization_machine(np.concatenate([x[i], aligned]), machines[0]),
            factorization_machine(x[i] - aligned, machines[1]),
            factorization_machine(x[i] * aligned, machines[2]),
        ]
        rows.append(np.concatenate([x[i], features]))
    return lstm_layer(np.array(rows), direction)[0]


def log_odds(sentence: np.ndarray, weights: dict[str, np.ndarray]) -> list[float]:
    """ReSAN: of every word to be chosen."""
    mean = np.mean(sentence, axis=0)
    inputs = [np.concatenate([x, mean, x * mean]) for x in sentence]
    hidden = [elu(weights["W"] @ u + weights["b"]) for u in inputs]
    return [float(weights["w"] @ h + weights["b_w"]) for h in hidden]


def reinforced_attention(
    sentence: np.ndarray,
    weights: dict[str, np.ndarray],
    backwards: bool,
    heads: Sequence[bool],
    dependents: Sequence[bool],
) -> np.ndarray:
    """One direction of ReSAN, word by word and dimension by dimension."""
    m = [elu(weights["W"] @ x + weights["b"]) for x in sentence]
    words, dim = len(sentence), len(weights["b"])
    out = np.zeros((words, dim))
    for i in range(words):
        s = np.zeros(dim)
        others = [j for j in range(words) if j != i]
        in_direction = [j for j in others if (j > i) == backwards and dependents[j]]
        for k in range(dim):
            if not heads[i]:
                s[k] = sum(m[j][k] for j in others) / max(len(others), 1)
                continue
            if not in_direction:
                continue
            logits = [
                weights["W1"][k] @ m[j] + weights["W2"][k] @ m[i] + weights["b_logits"][k]
                for j in in_direction
            ]
            shares = softmax([5 * math.tanh(logit / 5) for logit in logits])
            s[k] = sum(share * m[j][k] for share, j in zip(shares, in_direction, strict=True))
        f = sigmoid(weights["W3"] @ m[i] + weights["W4"] @ s + weights["b_gate"])
        out[i] = f * m[i] + (1 - f) * s
    return out
