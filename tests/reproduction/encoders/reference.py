"""DiSAN, NSE, CAFE and ReSAN in NumPy, one sentence and one token at a time, from the papers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tests.encoder.reference import Direction, lstm_cell, lstm_layer, sigmoid

Weights = dict[str, np.ndarray]  # of a module, by the names of its parameters


def affine(weights: Weights, name: str, x: np.ndarray) -> np.ndarray:
    return weights[f"{name}weight"] @ x + weights[f"{name}bias"]


def softmax(scores: Sequence[float]) -> list[float]:
    powers = [math.exp(score - max(scores)) for score in scores]
    return [power / sum(powers) for power in powers]


def elu(value: np.ndarray) -> np.ndarray:
    return np.where(value > 0, value, np.exp(np.minimum(value, 0)) - 1)


def nse(words: np.ndarray, read: Direction, compose: Weights, write: Direction) -> np.ndarray:
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
        composed = affine(compose, "", np.concatenate([read_h, remembered]))
        write_h, write_c, _ = lstm_cell(composed, write_h, write_c, write)
        for place, weight in enumerate(weights):
            memory[place] = (1 - weight) * memory[place] + weight * write_h
        states.append(write_h)
    return np.array(states)


def highway(x: np.ndarray, weights: Weights) -> np.ndarray:
    gate = sigmoid(affine(weights, "gate.", x))
    return gate * np.maximum(affine(weights, "transform.", x), 0) + (1 - gate) * x


def factorization_machine(u: np.ndarray, weights: Weights) -> float:
    """w_0 + w . u + sum over pairs i < j of (v_i . v_j) u_i u_j, pair by pair."""
    total, v = affine(weights, "linear.", u).item(), weights["factors"]
    for i in range(len(u)):
        for j in range(i + 1, len(u)):
            total += float(v[i] @ v[j]) * u[i] * u[j]
    return total


def cafe(
    words: np.ndarray,
    highways: Sequence[Weights],
    key: Weights,
    machines: Sequence[Weights],
    direction: Direction,
) -> np.ndarray:
    """machines: of [x ; x'], x - x' and x * x'."""
    x = list(words)
    for layer in highways:
        x = [highway(word, layer) for word in x]
    keys = [np.maximum(affine(key, "", word), 0) for word in x]
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


def log_odds(sentence: np.ndarray, weights: Weights) -> list[float]:
    """ReSAN: of every word to be chosen."""
    mean = np.mean(sentence, axis=0)
    inputs = [np.concatenate([x, mean, x * mean]) for x in sentence]
    hidden = [elu(affine(weights, "hidden.", u)) for u in inputs]
    return [affine(weights, "output.", h).item() for h in hidden]


def reinforced_attention(
    sentence: np.ndarray,
    weights: Weights,
    backwards: bool,
    heads: Sequence[bool],
    dependents: Sequence[bool],
) -> np.ndarray:
    """One direction of ReSAN, word by word and dimension by dimension.

    m = elu(W x + b); logits_ij = 5 tanh((W1 m_j + W2 m_i + b_logits) / 5); softmax over the j
    before i (after i, backwards); f = sigmoid(W3 m + W4 s + b_gate); out = f m + (1 - f) s.
    """
    m = [elu(affine(weights, "inputs.", x)) for x in sentence]
    words, dim = len(sentence), len(weights["inputs.bias"])
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
            query = affine(weights, "query.", m[i])[k]
            logits = [weights["key.weight"][k] @ m[j] + query for j in in_direction]
            shares = softmax([5 * math.tanh(logit / 5) for logit in logits])
            s[k] = sum(share * m[j][k] for share, j in zip(shares, in_direction, strict=True))
        f = sigmoid(affine(weights, "gate_own.", m[i]) + weights["gate_seen.weight"] @ s)
        out[i] = f * m[i] + (1 - f) * s
    return out
