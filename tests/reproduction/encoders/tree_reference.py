"""Tree encoders for one sentence, in NumPy, by recursion over trees that are nested pairs.

The state of a token is h of the largest node that ends at it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tests.encoder.reference import Direction, lstm_cell, sigmoid
from tests.helpers.tree_shapes import Nested, last_token, power_of_two_tree


class Node(NamedTuple):
    h: np.ndarray
    c: np.ndarray


class Layer(NamedTuple):
    weight: np.ndarray
    bias: np.ndarray

    def __call__(self, *parts: np.ndarray) -> np.ndarray:
        return self.weight @ np.concatenate(parts) + self.bias


def tree_lstm_node(gates: np.ndarray, left: Node, right: Node) -> Node:
    i, f_left, f_right, o, g = np.split(gates, 5)
    c = sigmoid(f_left) * left.c + sigmoid(f_right) * right.c + sigmoid(i) * np.tanh(g)
    return Node(sigmoid(o) * np.tanh(c), c)


def transitions(tree: Nested) -> list[str]:
    """Shift and reduce, in the order in which a stack machine builds the tree."""
    order: list[str] = []
    pending: list[Nested | None] = [tree]
    while pending:
        node = pending.pop()
        if node is None:
            order.append("reduce")
        elif isinstance(node, int):
            order.append("shift")
        else:
            pending += [None, node[1], node[0]]
    return order


def spinn(
    sentence: np.ndarray,
    tree: Nested,
    words: Layer,
    composition: Layer,
    tracking: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None,
    tracking_dim: int,
) -> np.ndarray:
    """The states (tokens, hidden); tracking returns the gates of [buffer, top, below, e]."""
    leaves = [Node(*np.split(words(x), 2)) for x in sentence]
    hidden = len(leaves[0].h)
    zeros = np.zeros(hidden)
    buffer, states = list(leaves), [zeros] * len(leaves)
    stack: list[Node] = []
    e = m = np.zeros(tracking_dim)
    for transition in transitions(tree):
        top = stack[-1].h if stack else zeros
        below = stack[-2].h if len(stack) > 1 else zeros
        if tracking is not None:
            i, f, o, g = np.split(tracking(buffer[0].h if buffer else zeros, top, below, e), 4)
            m = sigmoid(f) * m + sigmoid(i) * np.tanh(g)
            e = sigmoid(o) * np.tanh(m)
        if transition == "shift":
            stack.append(buffer.pop(0))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(tree_lstm_node(composition(left.h, right.h, e), left, right))
        states[len(leaves) - len(buffer) - 1] = stack[-1].h
    return np.array(states)


def lstm_nodes(sentence: np.ndarray, direction: Direction) -> list[Node]:
    """The states and cells of an LSTM."""
    h = c = np.zeros(len(direction["i"][2]))
    nodes = []
    for x in sentence:
        h, c, _ = lstm_cell(x, h, c, direction)
        nodes.append(Node(h, c))
    return nodes


def nti(
    sentence: np.ndarray, direction: Direction, gates: Layer, candidate: Layer, output_gate: Layer
) -> np.ndarray:
    leaves = lstm_nodes(sentence, direction)
    states = [leaf.h for leaf in leaves]

    def node(tree: Nested) -> Node:
        if isinstance(tree, int):
            return leaves[tree]
        left, right = node(tree[0]), node(tree[1])
        i, f_left, f_right = np.split(sigmoid(gates(left.h, right.h, left.c, right.c)), 3)
        c = f_left * left.c + f_right * right.c + i * np.tanh(candidate(left.h, right.h))
        joined = Node(sigmoid(output_gate(left.h, right.h, c)) * np.tanh(c), c)
        states[last_token(tree)] = joined.h
        return joined

    node(power_of_two_tree(0, len(sentence)))
    return np.array(states)


def gumbel_tree(
    leaves: list[Node], composition: Layer, query: np.ndarray
) -> tuple[np.ndarray, Nested]:
    """The states without noise, and the tree that was chosen."""
    nodes: list[tuple[Node, Nested]] = [(leaf, token) for token, leaf in enumerate(leaves)]
    states = [leaf.h for leaf in leaves]
    while len(nodes) > 1:
        candidates = [
            tree_lstm_node(composition(left.h, right.h), left, right)
            for (left, _), (right, _) in pairwise(nodes)
        ]
        place = int(np.argmax([query @ candidate.h for candidate in candidates]))
        joined = (nodes[place][1], nodes[place + 1][1])
        nodes[place : place + 2] = [(candidates[place], joined)]
        states[last_token(joined)] = candidates[place].h
    return np.array(states), nodes[0][1]


def tree_cnn(
    sentence: np.ndarray,
    heads: list[int],
    relations: list[int],
    parent: Layer,
    weights: np.ndarray,
) -> np.ndarray:
    states = []
    for token, x in enumerate(sentence):
        total = parent(x)
        for child, head in enumerate(heads):
            if head == token:
                total = total + weights[relations[child]] @ sentence[child]
        states.append(np.maximum(total, 0))
    return np.array(states)
