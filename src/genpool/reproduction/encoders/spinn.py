"""SPINN with parsed input: a binary tree, built by a stack machine (Bowman et al. 2016).

The nodes are in a memory of rows that are written once and read many times, in any order.
Autograd's own indexing would pay for the complete memory at every step of the backward pass; here a
step pays for its rows alone. The memory is passed from call to call, and its gradient flows back
through the same chain in place:

    memory, read = WriteAndRead.apply(memory, rows, start, index)  # never the old `memory` again
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from genpool.encoder.lstm import lstm_cell
from genpool.errors import InputError
from genpool.reproduction.encoders.shared import (
    PackedEncoder,
    composition_layer,
    initialize_parts,
    join_nodes,
)
from genpool.reproduction.trees import BinaryTrees, to_brackets, tree_rows
from genpool.tensors.modules import require_positive
from genpool.tensors.packing import Packing


class SPINNEncoder(PackedEncoder):
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
        self.words = nn.Linear(input_dim, 2 * hidden_dim)  # h and c
        initialize_parts(self.words, 2)
        self.composition = composition_layer(2 * hidden_dim + tracking_dim, hidden_dim)
        if tracking_dim:
            self.tracking_buffer = nn.Linear(hidden_dim, 4 * tracking_dim)
            self.tracking_stack = nn.Linear(
                2 * hidden_dim + tracking_dim, 4 * tracking_dim, bias=False
            )
            for layer in (self.tracking_buffer, self.tracking_stack):
                initialize_parts(layer, 4)

    def states(self, rows: Tensor, packing: Packing) -> Tensor:
        plan = shift_reduce_plan(tree_rows(packing, BinaryTrees)[:, 0], packing)
        # Under autocast too, nodes keep the type of the weights: they are read by many steps.
        tokens = self.words(rows).to(self.words.weight.dtype)  # (rows, 2 hidden): h and c
        hidden, sentences = self.output_dim, plan.steps[0].active
        memory = tokens.new_zeros(plan.nodes, 2 * hidden)
        write_and_read: Any = WriteAndRead.apply
        made, first_node = tokens, 1  # the rows that are written before the next ones are read
        e = m = tokens.new_zeros(sentences, self.tracking_dim)  # (sentences, tracking)
        from_buffer = self._buffer_gates(tokens[:, :hidden], plan)
        for number, step in enumerate(plan.steps):
            memory, pair = write_and_read(memory, made, first_node, step.stack)
            right, left = pair.chunk(2)  # 2 x (active, 2 hidden): the top, and the node below
            first_node, parts = step.first_node, [left, right]
            if self.tracking_dim:
                seen = torch.cat([right[:, :hidden], left[:, :hidden], e[: step.active]], dim=1)
                e, m = lstm_cell(from_buffer[number] + self.tracking_stack(seen), m[: step.active])
                parts.append(e)
            made = memory[:0]
            if len(step.reducing):
                parts = [part.index_select(0, step.reducing) for part in parts]
                made = join_nodes(self.composition, *parts).to(memory.dtype)  # (n, 2 hidden)
        _, tops = write_and_read(memory, made, first_node, plan.tops)  # (rows, 2 hidden)
        states: Tensor = tops[:, :hidden]
        return states

    def make_annotator(self) -> BinaryTrees:
        return BinaryTrees(self.parser)

    def tree(self, words: Sequence[str], rows: Tensor, packing: Packing) -> str:
        return to_brackets(words, tree_rows(packing, BinaryTrees).cpu().numpy())

    def _buffer_gates(self, words: Tensor, plan: ShiftReducePlan) -> tuple[Tensor, ...]:
        """Returns for every step what the next words (rows, hidden) add to the tracking gates."""
        if not self.tracking_dim:
            return ()
        # The products are the same at every step: they are computed once for each word.
        empty = words.new_zeros(1, words.shape[1])
        projected = self.tracking_buffer(torch.cat([empty, words]))  # (1 + rows, 4 tracking)
        steps = projected.index_select(0, plan.buffer)
        return torch.split(steps, [step.active for step in plan.steps])


# The order of work: integers only, known before any vector is.


class Step(NamedTuple):
    """One transition of all sentences that have one; long sentences come first, as in `Packing`."""

    active: int  # the number of sentences
    stack: Tensor  # (2 * active,): the nodes on top of the stacks, then those below; 0 for none
    reducing: Tensor  # (n,): the sentences that join these two nodes; the others shift a token
    first_node: int  # the number of the first node that is made; the others follow


class ShiftReducePlan(NamedTuple):
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
    for tree, length in zip(counts, lengths, strict=True):
        BinaryTrees.check(tree[:length, None].astype(np.int32))
    # Two empty nodes are at the bottom of every stack, so that the two top ones always exist.
    stack = np.zeros((sentences, longest + 3), dtype=np.int64)
    height = np.ones(sentences, dtype=np.int64)  # index of the top
    # Tokens that were shifted, and reductions before the next shift.
    shifted, waiting = np.zeros((2, sentences), dtype=np.int64)
    tops = np.zeros_like(counts)
    steps, buffer, nodes = [], [], 1 + rows
    device = packing.index.device
    for number in range(2 * longest - 1):
        active = int((2 * lengths - 1 > number).sum())
        sentence = np.arange(active)
        top, below = (stack[sentence, height[:active] - depth] for depth in (0, 1))
        reducing, shifting = np.flatnonzero(waiting[:active]), np.flatnonzero(waiting[:active] == 0)
        buffer.append(token_node[sentence, shifted[:active]])
        on_stack = torch.from_numpy(np.concatenate([top, below])).to(device)
        steps.append(Step(active, on_stack, torch.from_numpy(reducing).to(device), nodes))
        # Reduce: the new node takes the place of the two on top.
        height[reducing] -= 1
        stack[reducing, height[reducing]] = nodes + np.arange(len(reducing))
        waiting[reducing] -= 1
        nodes += len(reducing)
        # Shift: the next token comes on top.
        height[shifting] += 1
        tokens = shifted[shifting]
        stack[shifting, height[shifting]] = token_node[shifting, tokens]
        waiting[shifting] = counts[shifting, tokens]
        shifted[shifting] += 1
        # The last of a token's transitions leaves the largest node that ends there.
        tops[sentence, shifted[:active] - 1] = stack[sentence, height[:active]]
    of_rows = torch.from_numpy(tops[rank_of, step_of]).to(device)  # (rows,)
    in_buffer = torch.from_numpy(np.concatenate(buffer)).to(device)
    return ShiftReducePlan(steps, in_buffer, of_rows, nodes)


class WriteAndRead(torch.autograd.Function):
    """Writes rows (n, dim) at start, start + 1, ... of the memory, where nothing was read before.

    Returns the memory, to be used from now on, and its rows (m, dim) at index (m,).
    """

    @staticmethod
    def forward(
        ctx: Any, memory: Tensor, rows: Tensor, start: int, index: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.place, ctx.shape = slice(start, start + len(rows)), memory.shape
        ctx.save_for_backward(index)
        ctx.set_materialize_grads(False)
        memory[ctx.place] = rows
        ctx.mark_dirty(memory)
        return memory, memory.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        grad_memory, grad_read = grads
        if grad_read is not None:
            if grad_memory is None:
                grad_memory = grad_read.new_zeros(ctx.shape)
            # In place: the chain is the only owner of this gradient.
            grad_memory.index_add_(0, ctx.saved_tensors[0], grad_read)
        grad_rows = None if grad_memory is None else grad_memory[ctx.place].clone()
        return grad_memory, grad_rows, None, None
