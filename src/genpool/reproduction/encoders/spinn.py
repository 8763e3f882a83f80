"""SPINN with parsed input: a binary tree, built by a stack machine (Bowman et al. 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from genpool.encoder.base import Encoder
from genpool.encoder.lstm import lstm_cell
from genpool.errors import InputError
from genpool.reproduction.encoders.tree_nodes import (
    composition_layer,
    initialize_parts,
    join_nodes,
    leaf_layer,
    new_memory,
    read_rows,
    write_rows,
)
from genpool.reproduction.trees import BinaryTrees, to_brackets, tree_rows
from genpool.tensors.checks import require_positive
from genpool.tensors.packing import Packing

Ints = NDArray[np.int64]


class SPINNEncoder(Encoder):
    """SPINN-PI (Bowman et al. 2016): a TreeLSTM over a binary parse, with a tracking LSTM.

    A sentence is read by transitions. Shift moves the next word from the buffer to the stack;
    reduce replaces the two nodes on top of the stack by one above them:

        words:     [h ; c] = W_w x + b_w
        tracking:  e, m = LSTM([h of the next word ; h of the top ; h of the node below], e, m)
        reduce:    [i ; f_l ; f_r ; o ; g] = W [h_l ; h_r ; e] + b      right child: the top
                   c = sig(f_l) c_l + sig(f_r) c_r + sig(i) tanh(g),  h = sig(o) tanh(c)

    The tracking LSTM sees stack and buffer before every transition. A token's state is the largest
    node that ends at it, so that the last token's is the root: with last pooling the vector is the
    paper's. All sentences of a batch make their transitions together.

    Chosen here: no batch normalization of the words, Xavier weights, forget biases of the nodes 1.
    The published model has hidden_dim 300 and tracking_dim 61.

    Args:
        input_dim: dimensions of a token vector.
        hidden_dim: dimensions of a node. Default: 300.
        tracking_dim: dimensions of the tracking LSTM; 0 leaves it out (SPINN-PI-NT). Default: 61.
        parser: what parses text that has no parse: "spacy" (the extra `parse`). Default: None,
            balanced trees.

    Raises:
        InputError: input_dim or hidden_dim is less than 1, or tracking_dim less than 0.

    Example:
        >>> trees = torch.tensor([[[0], [1], [1]]])     # ( ( A man ) sleeps )
        >>> states, _ = SPINNEncoder(300)(vectors, mask, annotations=trees)   # (1, 3, 300)
    """

    annotator_class = BinaryTrees

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int = 300,
        tracking_dim: int = 61,
        parser: Literal["spacy"] | None = None,
    ) -> None:
        require_positive(input_dim=input_dim, hidden_dim=hidden_dim)
        if tracking_dim < 0:
            raise InputError(f"tracking_dim is {tracking_dim}; expected 0 or more.")
        super().__init__(input_dim, output_dim=hidden_dim)
        self.tracking_dim, self.parser = tracking_dim, parser
        self.words = leaf_layer(input_dim, hidden_dim)
        self.composition = composition_layer(2 * hidden_dim + tracking_dim, hidden_dim)
        if tracking_dim:
            self.tracking_buffer = nn.Linear(hidden_dim, 4 * tracking_dim)
            self.tracking_stack = nn.Linear(
                2 * hidden_dim + tracking_dim, 4 * tracking_dim, bias=False
            )
            for layer in (self.tracking_buffer, self.tracking_stack):
                initialize_parts(layer, 4)

    def encode_rows(
        self, rows: Tensor, packing: Packing, gates: bool
    ) -> tuple[Tensor, Tensor | None]:
        if not packing.sizes:
            return rows.new_zeros(0, self.output_dim), None
        plan = shift_reduce_plan(tree_rows(packing, BinaryTrees)[:, 0], packing)
        # Under autocast too, nodes keep the type of the weights: they are read by many steps.
        tokens = self.words(rows).to(self.words.weight.dtype)  # (rows, 2 hidden): h and c
        return self._run(tokens, plan), None

    def make_annotator(self) -> BinaryTrees:
        return BinaryTrees(self.parser)

    def tree(self, words: Sequence[str], rows: Tensor, packing: Packing) -> str:
        return to_brackets(words, tree_rows(packing, BinaryTrees).cpu().numpy())

    def _run(self, tokens: Tensor, plan: ShiftReducePlan) -> Tensor:
        """Returns the states (rows, hidden) after all transitions, from tokens (rows, 2 hidden)."""
        hidden, sentences = self.output_dim, plan.steps[0].active
        memory = write_rows(new_memory(plan.nodes, tokens), tokens, 1)  # (nodes, 2 hidden)
        e = m = tokens.new_zeros(sentences, self.tracking_dim)  # (sentences, tracking)
        from_buffer = self._buffer_gates(tokens[:, :hidden], plan)
        for number, step in enumerate(plan.steps):
            memory, pair = read_rows(memory, step.stack)  # (2 active, 2 hidden)
            right, left = pair.chunk(2)  # 2 x (active, 2 hidden): the top, and the node below
            if self.tracking_dim:
                seen = torch.cat([right[:, :hidden], left[:, :hidden], e[: step.active]], dim=1)
                e, m = lstm_cell(from_buffer[number] + self.tracking_stack(seen), m[: step.active])
            if len(step.reducing):
                node = self._reduce(left, right, e, step.reducing)  # (reducing, 2 hidden)
                memory = write_rows(memory, node.to(memory.dtype), step.first_node)
        _, tops = read_rows(memory, plan.tops)  # (rows, 2 hidden)
        return tops[:, :hidden]

    def _buffer_gates(self, words: Tensor, plan: ShiftReducePlan) -> tuple[Tensor, ...]:
        """Returns for every step what the next words (rows, hidden) add to the tracking gates."""
        if not self.tracking_dim:
            return ()
        # The products are the same at every step: they are computed once for each word.
        empty = words.new_zeros(1, words.shape[1])
        projected = self.tracking_buffer(torch.cat([empty, words]))  # (1 + rows, 4 tracking)
        steps = projected.index_select(0, plan.buffer)
        return torch.split(steps, [step.active for step in plan.steps])

    def _reduce(self, left: Tensor, right: Tensor, e: Tensor, reducing: Tensor) -> Tensor:
        if len(reducing) < len(left):
            left, right = left.index_select(0, reducing), right.index_select(0, reducing)
            e = e.index_select(0, reducing) if self.tracking_dim else e
        hidden = self.output_dim
        (h_left, c_left) = torch.split(left, hidden, 1)
        (h_right, c_right) = torch.split(right, hidden, 1)
        inputs = [h_left, h_right, *([e] if self.tracking_dim else [])]
        gates = self.composition(torch.cat(inputs, dim=1))  # (reducing, 5 hidden)
        return torch.cat(join_nodes(gates, c_left, c_right), dim=1)


# The order of work: integers only, known before any vector is.


@dataclass(frozen=True)
class Step:
    """One transition of all sentences that have one; long sentences come first, as in `Packing`."""

    active: int  # the number of sentences
    stack: Tensor  # (2 * active,): the nodes on top of the stacks, then those below; 0 for none
    reducing: Tensor  # (n,): the sentences that join these two nodes; the others shift a token
    first_node: int  # the number of the first node that is made; the others follow


@dataclass(frozen=True)
class ShiftReducePlan:
    """All transitions of a batch. Node 0 is empty, then come the tokens, as rows, then the rest."""

    steps: list[Step]
    buffer: Tensor  # (sum of active,): the next token of every sentence at every step; 0 for none
    tops: Tensor  # (rows,): the largest node that ends at each token; at the last it is the root
    nodes: int  # the number of nodes, the empty one included


def shift_reduce_plan(reductions: Tensor, packing: Packing) -> ShiftReducePlan:
    """Returns the plan for binary trees, as reductions (rows,); raises InputError for others."""
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
        on_device = [torch.from_numpy(array).to(device) for array in (stack, reducing)]
        steps.append(Step(active, on_device[0], on_device[1], nodes))
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
