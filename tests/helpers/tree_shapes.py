"""Binary trees of every shape as nested pairs: a tree is a token (an integer) or two trees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

Nested: TypeAlias = "int | tuple[Nested, Nested]"


def halves(start: int, end: int) -> Nested:
    """Halves of halves; the left half of an odd number is longer."""
    if end - start == 1:
        return start
    middle = start + (end - start + 1) // 2
    return halves(start, middle), halves(middle, end)


def power_of_two_tree(start: int, end: int) -> Nested:
    """Neighbours in pairs, level by level: the left side is as large a power of two as fits."""
    if end - start == 1:
        return start
    left = 1
    while 2 * left < end - start:
        left *= 2
    return power_of_two_tree(start, start + left), power_of_two_tree(start + left, end)


def left_chain(tokens: int) -> Nested:
    tree: Nested = 0
    for token in range(1, tokens):
        tree = (tree, token)
    return tree


def right_chain(tokens: int) -> Nested:
    tree: Nested = tokens - 1
    for token in range(tokens - 2, -1, -1):
        tree = (token, tree)
    return tree


def random_tree(start: int, end: int, random: np.random.Generator) -> Nested:
    if end - start == 1:
        return start
    middle = int(random.integers(start + 1, end))
    return random_tree(start, middle, random), random_tree(middle, end, random)


def random_dependencies(tokens: int, random: np.random.Generator, relations: int = 1) -> np.ndarray:
    """Any rooted tree, with crossing arcs: every token hangs below an earlier one of an order."""
    order = random.permutation(tokens)
    heads = np.full(tokens, -1)
    for place in range(1, tokens):
        heads[order[place]] = order[random.integers(place)]
    return np.stack([heads, random.integers(relations, size=tokens)], axis=1).astype(np.int32)


def every_tree(start: int, end: int) -> Iterator[Nested]:
    """All binary trees over the tokens start, ..., end - 1."""
    if end - start == 1:
        yield start
    for middle in range(start + 1, end):
        for left in every_tree(start, middle):
            for right in every_tree(middle, end):
                yield left, right


def last_token(tree: Nested) -> int:
    while not isinstance(tree, int):
        tree = tree[1]
    return tree


def reductions(tree: Nested, tokens: int) -> list[int]:
    """How many nodes with two children end at each token."""
    counts = [0] * tokens
    pending = [tree]
    while pending:
        node = pending.pop()
        if not isinstance(node, int):
            counts[last_token(node)] += 1
            pending += node
    return counts


def middle_heads(tokens: int) -> list[int]:
    """The middle token is the root, and the middle of each side depends on it, and so on."""
    heads = [-1] * tokens

    def attach(start: int, end: int, head: int) -> None:
        if start < end:
            middle = start + (end - start) // 2
            heads[middle] = head
            attach(start, middle, middle)
            attach(middle + 1, end, middle)

    attach(0, tokens, -1)
    return heads
