"""The order of work of a shift-reduce encoder: integers only, known before any vector is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genpool.errors import InputError
from genpool.tensors.packing import Packing

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Step:
    """One transition of all sentences that have one; long sentences come first, as in `Packing`.

    Attributes:
        active: the number of sentences.
        stack: (2 * active,), the nodes on top of their stacks, then the nodes below those; 0 where
            there is none.
        reducing: (n,), which of them join these two nodes; the others shift a token.
        first_node: the number of the first node that is made; the others follow.
    """

    active: int
    stack: Tensor
    reducing: Tensor
    first_node: int


@dataclass(frozen=True)
class ShiftReducePlan:
    """All transitions of a batch. Node 0 is empty, then come the tokens, as rows, then the rest.

    Attributes:
        steps: the transitions.
        buffer: (sum of active,), the next token of every sentence at every step, as a node; 0 where
            none is left.
        tops: (rows,), the largest node that ends at each token; at the last one it is the root.
        nodes: the number of nodes, the empty one included.
    """

    steps: list[Step]
    buffer: Tensor
    tops: Tensor
    nodes: int


def shift_reduce_plan(reductions: Tensor, packing: Packing) -> ShiftReducePlan:
    """Returns the plan for binary trees, as reductions (rows,) of packed tokens.

    Raises:
        InputError: the integers are not binary trees.
    """
    sizes = np.array(packing.sizes, dtype=np.int64)  # (longest,)
    rows, longest, sentences = int(sizes.sum()), len(sizes), packing.sizes[0]
    step_of = np.repeat(np.arange(longest), sizes)  # (rows,)
    rank_of = np.arange(rows) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # (rows,)
    counts, token_node = np.zeros((2, sentences, longest + 1), dtype=np.int64)
    counts[rank_of, step_of] = reductions.cpu().numpy()
    token_node[rank_of, step_of] = 1 + np.arange(rows)  # 0 behind the last token
    lengths = (token_node > 0).sum(axis=1)  # (sentences,): never increasing
    _require_trees(counts, lengths)
    state = _Stacks(counts, token_node)
    steps, buffer, nodes = [], [], 1 + rows
    device = packing.index.device
    for number in range(2 * longest - 1):
        active = int((2 * lengths - 1 > number).sum())
        stack, reducing = state.top_two(active), state.reducing(active)
        buffer.append(state.next_tokens(active))
        steps.append(
            Step(
                active,
                torch.from_numpy(stack).to(device),
                torch.from_numpy(reducing).to(device),
                nodes,
            )
        )
        state.apply(active, reducing, nodes)
        nodes += len(reducing)
    tops = torch.from_numpy(state.tops[rank_of, step_of]).to(device)  # (rows,)
    return ShiftReducePlan(steps, torch.from_numpy(np.concatenate(buffer)).to(device), tops, nodes)


def _require_trees(counts: Ints, lengths: Ints) -> None:
    depth = np.arange(1, counts.shape[1] + 1) - np.cumsum(
        counts, axis=1
    )  # (sentences, longest + 1)
    real = np.arange(counts.shape[1]) < lengths[:, None]
    wrong = ((counts < 0) | (depth < 1)) & real
    wrong[:, 0] |= depth[np.arange(len(lengths)), lengths - 1] != 1
    if wrong.any():
        row = int(wrong.any(axis=1).argmax())
        given = counts[row, : lengths[row]].tolist()
        raise InputError(
            f"reductions {given} are no binary tree of {lengths[row]} tokens; expected "
            f"{lengths[row] - 1} in total, never more than there are nodes to join."
        )


class _Stacks:
    """The stacks of all sentences while the plan is made."""

    def __init__(self, counts: Ints, token_node: Ints) -> None:
        self.counts, self.token_node = counts, token_node
        sentences, width = counts.shape
        # Two empty nodes are at the bottom, so that the two top ones always exist.
        self.stack = np.zeros((sentences, width + 2), dtype=np.int64)
        self.height = np.ones(sentences, dtype=np.int64)  # index of the top
        self.shifted = np.zeros(sentences, dtype=np.int64)
        self.pending = np.zeros(sentences, dtype=np.int64)  # reductions before the next shift
        self.tops = np.zeros_like(counts)
        self.all = np.arange(sentences)

    def top_two(self, active: int) -> Ints:
        rows, height = self.all[:active], self.height[:active]
        return np.concatenate([self.stack[rows, height], self.stack[rows, height - 1]])

    def next_tokens(self, active: int) -> Ints:
        return self.token_node[self.all[:active], self.shifted[:active]]

    def reducing(self, active: int) -> Ints:
        return np.flatnonzero(self.pending[:active])

    def apply(self, active: int, reducing: Ints, first_node: int) -> None:
        """Makes the transition: nodes first_node, first_node + 1, ... for those that reduce."""
        self.height[reducing] -= 1
        self.stack[reducing, self.height[reducing]] = first_node + np.arange(len(reducing))
        self.pending[reducing] -= 1
        rows = self.all[:active]
        shifting = np.setdiff1d(rows, reducing, assume_unique=True)
        self.height[shifting] += 1
        tokens = self.shifted[shifting]
        self.stack[shifting, self.height[shifting]] = self.token_node[shifting, tokens]
        self.pending[shifting] = self.counts[shifting, tokens]
        self.shifted[shifting] += 1
        # The last of a token's transitions leaves the largest node that ends there.
        self.tops[rows, self.shifted[:active] - 1] = self.stack[rows, self.height[:active]]
