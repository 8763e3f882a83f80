"""The poolings and penalties a second time: NumPy loops, straight from the equations.

A pooling here takes the real tokens of one sentence, `tokens` (time, dim), and returns its heads
(heads, dim) and its weights (heads, time, dim or 1), None where the equations have none. There is
no batch and no padding, so nothing here can get a mask wrong.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Sentence = tuple[Array, Array | None]


def softmax(logits: Array) -> Array:
    powers = [math.exp(logit - max(logits)) for logit in logits]
    return np.array([power / sum(powers) for power in powers])


def vector_attention(tokens: Array, logits: Array) -> tuple[Array, Array]:
    """Weights (time, dim), a softmax per dimension over time, and the sum a_t * h_t."""
    time, dim = tokens.shape
    weights, vector = np.zeros((time, dim)), np.zeros(dim)
    for d in range(dim):
        weights[:, d] = softmax(logits[:, d])
        for t in range(time):
            vector[d] += weights[t, d] * tokens[t, d]
    return vector, weights


def scalar_attention(tokens: Array, logits: Array) -> tuple[Array, Array]:
    """Weights (time, 1), one softmax over time, and the sum alpha_t h_t."""
    weights, vector = softmax(logits), np.zeros(tokens.shape[1])
    for t, token in enumerate(tokens):
        vector += weights[t] * token
    return vector, weights[:, None]


def stack(heads: list[tuple[Array, Array]]) -> Sentence:
    return np.array([vector for vector, _ in heads]), np.array([weights for _, weights in heads])


def generalized(tokens: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Sentence:
    """A^i = softmax(W2^i ReLU(W1^i H^T + b1^i) + b2^i)^T;  v^i = sum_t a^i_t * h_t."""
    heads = []
    for i in range(len(w1)):
        logits = np.zeros(tokens.shape)
        for t, token in enumerate(tokens):
            before = w1[i] @ token + b1[i]
            hidden = [max(unit, 0.0) for unit in before]
            logits[t] = w2[i] @ np.array(hidden) + b2[i]
        heads.append(vector_attention(tokens, logits))
    return stack(heads)


def scalar(tokens: Array, w1: Array, w2: Array) -> Sentence:
    """Lin et al.: A = softmax_t(W2 tanh(W1 H^T)), M = A H."""
    heads = []
    for row in w2:
        logits = [row @ np.array([math.tanh(unit @ token) for unit in w1]) for token in tokens]
        heads.append(scalar_attention(tokens, np.array(logits)))
    return stack(heads)


def inner(tokens: Array, wy: Array, wh: Array, w: Array) -> Sentence:
    """Liu et al.: r = mean h; m_t = tanh(Wy h_t + Wh r); alpha = softmax_t(w^T m_t)."""
    average = mean(tokens)[0][0]
    logits = []
    for token in tokens:
        meeting = [math.tanh(wy[k] @ token + wh[k] @ average) for k in range(len(w))]
        logits.append(sum(w[k] * meeting[k] for k in range(len(w))))
    return stack([scalar_attention(tokens, np.array(logits))])


def gated(tokens: Array, gates: Array) -> Sentence:
    """Chen et al.: v = [mean ; max ; sum_t g_t h_t / sum_t g_t], g_t = ||gates_t||_2."""
    above, below = np.zeros(tokens.shape[1]), 0.0
    for token, gate in zip(tokens, gates, strict=True):
        size = math.sqrt(sum(value**2 for value in gate))
        above += size * token
        below += size
    return np.array([mean(tokens)[0][0], maximum(tokens)[0][0], above / below]), None


def source_to_token(tokens: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Sentence:
    """DiSAN: P = softmax_t(W2 elu(W1 h_t + b1) + b2) per dimension, v = sum_t P_t * h_t."""
    logits = np.zeros(tokens.shape)
    for t, token in enumerate(tokens):
        before = w1 @ token + b1
        hidden = np.array([x if x > 0 else math.exp(x) - 1 for x in before])
        logits[t] = w2 @ hidden + b2
    return stack([vector_attention(tokens, logits)])


def maximum(tokens: Array) -> Sentence:
    return np.array([[max(token[d] for token in tokens) for d in range(tokens.shape[1])]]), None


def mean(tokens: Array) -> Sentence:
    total = np.zeros(tokens.shape[1])
    for token in tokens:
        total += token
    return np.array([total / len(tokens)]), None


def mean_max(tokens: Array) -> Sentence:
    return np.array([mean(tokens)[0][0], maximum(tokens)[0][0]]), None


def last(tokens: Array, bidirectional: bool) -> Sentence:
    """[last forward state ; first backward state], or the last state of a one-way encoder."""
    if not bidirectional:
        return np.array([tokens[-1]]), None
    half = tokens.shape[1] // 2
    return np.array([[*tokens[-1][:half], *tokens[0][half:]]]), None


def squared_distance(one: Array, other: Array) -> float:
    return float(sum((a - b) ** 2 for a, b in zip(one.ravel(), other.ravel(), strict=True)))


def distances(heads: Array) -> list[float]:
    """Squared distances of the heads (0, 1), (0, 2), ..., (1, 2), ...: heads (heads, ...)."""
    count = len(heads)
    return [squared_distance(heads[i], heads[j]) for i in range(count) for j in range(i + 1, count)]


def hinges(apart: list[float], threshold: float) -> list[float]:
    return [max(threshold - distance, 0.0) for distance in apart]


def parameter_penalty(w1: Array, threshold: float, weight: float) -> float:
    """P = mu sum_{i<j} max(lambda - ||W1^i - W1^j||_F^2, 0)."""
    return weight * sum(hinges(distances(w1), threshold))


def sentence_penalty(batch: Array, threshold: float, weight: float) -> float:
    """The paper's P of every sentence, then their mean: batch (batch, heads, ...)."""
    terms = [weight * sum(hinges(distances(heads), threshold)) for heads in batch]
    return sum(terms) / len(terms)


def batch_penalty(batch: Array, threshold: float, weight: float) -> float:
    """The released program's: the mean distance of each pair over the batch, then the hinge."""
    per_sentence = [distances(heads) for heads in batch]
    means = [sum(pair) / len(pair) for pair in zip(*per_sentence, strict=True)]
    return weight * sum(hinges(means, threshold))


def scalar_attention_penalty(batch: Array, weight: float) -> float:
    """Lin et al.: ||A A^T - I||_F^2 per sentence, then the mean: batch (batch, heads, time)."""
    terms = []
    for attention in batch:
        term = 0.0
        for i, row in enumerate(attention):
            for j, other in enumerate(attention):
                term += (sum(a * b for a, b in zip(row, other, strict=True)) - (i == j)) ** 2
        terms.append(term)
    return weight * sum(terms) / len(terms)
