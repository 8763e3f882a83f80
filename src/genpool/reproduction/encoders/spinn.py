"""SPINN with parsed input: a binary tree, built by a stack machine (Bowman et al. 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from genpool.encoder.base import Encoder
from genpool.encoder.lstm import lstm_cell
from genpool.errors import InputError
from genpool.reproduction.encoders.row_memory import new_memory, read_rows, write_rows
from genpool.reproduction.encoders.spinn_plan import ShiftReducePlan, shift_reduce_plan
from genpool.reproduction.encoders.tree_lstm import (
    composition_layer,
    initialize_parts,
    join_nodes,
    leaf_layer,
)
from genpool.reproduction.trees import BinaryTrees, to_brackets, tree_rows
from genpool.tensors.checks import require_positive
from genpool.tensors.packing import Packing


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
        self.hidden_dim, self.tracking_dim, self.parser = hidden_dim, tracking_dim, parser
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
