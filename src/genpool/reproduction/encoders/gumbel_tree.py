"""Gumbel TreeLSTM: a binary tree that the encoder chooses itself (Choi et al. 2018).

The nodes [h ; c] of all sentences are the rows of one tensor, sentence after sentence, without
padding. Pair p of a layer is the row left_at[p] with the row behind it, and row p of the next one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from genpool.encoder.lstm import LSTMDirection
from genpool.errors import InputError
from genpool.reproduction.encoders.shared import (
    PackedEncoder,
    composition_layer,
    join_nodes,
    lstm_leaves,
)
from genpool.reproduction.trees import to_brackets
from genpool.tensors.modules import dropout_is_disabled, require_positive
from genpool.tensors.packing import Packing


def straight_through(logits: Tensor, valid: Tensor, temperature: float) -> Tensor:
    """Returns one-hot choices of the largest of noisy logits, with the gradient of their softmax.

    logits, valid (batch, pairs): a row in which nothing is valid has zeros.
    """
    uniform = torch.rand_like(logits).clamp_min(torch.finfo(logits.dtype).tiny)
    noise = -(-uniform.log()).clamp_min(torch.finfo(logits.dtype).tiny).log()  # (batch, pairs)
    noisy = ((logits + noise) / temperature).masked_fill(~valid, torch.finfo(logits.dtype).min)
    soft = noisy.softmax(dim=1).masked_fill(~valid, 0)  # (batch, pairs)
    return best(noisy, valid) + (soft - soft.detach())  # in this order: the sum is exactly 0 or 1


def best(logits: Tensor, valid: Tensor) -> Tensor:
    """Returns one-hot choices (batch, pairs) of the largest valid logit, without a gradient."""
    lowest = torch.finfo(logits.dtype).min
    choice = logits.masked_fill(~valid, lowest).argmax(dim=1, keepdim=True)  # (batch, 1)
    hard = torch.zeros_like(logits).scatter(1, choice, 1)  # (batch, pairs)
    return hard.masked_fill(~valid, 0)


class GumbelTreeEncoder(PackedEncoder):
    """Gumbel TreeLSTM (Choi et al. 2018): a TreeLSTM that learns which neighbours to join.

    Layer by layer, all neighbouring nodes j, j + 1 are joined to candidates, one candidate is
    chosen, and the other nodes are copied, until one node is left:

        candidates:  [i ; f_l ; f_r ; o ; g] = W [h_j ; h_{j+1}] + b
                     c = sig(f_l) c_j + sig(f_r) c_{j+1} + sig(i) tanh(g),  h = sig(o) tanh(c)
        scores:      v_j = q . h of candidate j
        choice y:    in training straight-through Gumbel-softmax of v, otherwise the largest v
        next layer:  y_j candidate_j + (nodes left of the choice: node_j; right of it: node_{j+1})

    No parse is read. A token's state is the largest node that ends at it, so that the last token's
    is the root: with last pooling the vector is the paper's.

    Leaves are the states and cells of a one-way LSTM. Chosen here: initial weights (Xavier, forget
    biases of the nodes 1, q Gaussian with 0.01). Published are hidden_dim 300 and 600.

    Args:
        hidden_dim: dimensions of a node. Default: 300.
        temperature: of the Gumbel-softmax; lower values are nearer to a hard choice. Default: 1.0.

    Raises:
        InputError: a size is less than 1, or temperature is not positive.

    Example:
        >>> encoder = GumbelTreeEncoder(300).eval()
        >>> states, _ = encoder(vectors, mask)                  # (batch, time, 300)
        >>> encoder.chosen_trees(vectors, mask).shape           # (batch, time, 1), binary trees
    """

    def __init__(self, input_dim: int, hidden_dim: int = 300, temperature: float = 1.0) -> None:
        require_positive(input_dim=input_dim, hidden_dim=hidden_dim)
        if not 0 < temperature < float("inf"):
            raise InputError(f"temperature is {temperature}; expected a number above 0.")
        super().__init__(input_dim, output_dim=hidden_dim)
        self.temperature = temperature
        self.leaves = LSTMDirection(input_dim, hidden_dim)
        self.composition = composition_layer(2 * hidden_dim, hidden_dim)
        self.query = nn.Parameter(torch.empty(hidden_dim))
        nn.init.normal_(self.query, std=0.01)

    def states(self, rows: Tensor, packing: Packing) -> Tensor:
        return self._grow(rows, packing, self.training and not dropout_is_disabled())[0]

    def chosen_trees(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Returns the binary trees (batch, time, 1) that the encoder chooses, without noise.

        Reductions per token, zeros at padding; `genpool.reproduction.trees.to_brackets` prints one.
        """
        packing = Packing.from_mask(mask)
        with torch.no_grad():
            return packing.unpack(self._grow(packing.pack(inputs), packing, sample=False)[1])

    def tree(self, words: Sequence[str], rows: Tensor, packing: Packing) -> str:
        with torch.no_grad():
            trees = self._grow(rows, packing, sample=False)[1]  # (rows, 1)
        return to_brackets(words, trees.cpu().numpy())

    def _grow(self, rows: Tensor, packing: Packing, sample: bool) -> tuple[Tensor, Tensor]:
        """Returns the states (rows, hidden) and the trees as reductions (rows, 1)."""
        if not packing.sizes:
            return rows.new_zeros(0, self.output_dim), packing.step.new_zeros(0, 1)
        # In single precision or better, because rounding must not change a choice.
        wide = torch.promote_types(self.query.dtype, torch.float32)
        with torch.autocast(rows.device.type, enabled=False):
            leaves = lstm_leaves(self.leaves, rows.to(wide), packing.sizes)  # (rows, 2 hidden)
            states, trees = self._join_all(leaves, packing, sample)
        return states.to(self.query.dtype), trees

    def _join_all(self, leaves: Tensor, packing: Packing, sample: bool) -> tuple[Tensor, Tensor]:
        """Returns the same for leaves (rows, 2 hidden), in their type."""
        device, longest = leaves.device, len(packing.sizes)
        # Long sentences first, as in the packing: those that are not finished are the first ones.
        sizes = torch.tensor(packing.sizes, device=device)  # (longest,)
        rank = torch.arange(len(leaves), device=device) - (sizes.cumsum(0) - sizes)[packing.step]
        lengths = torch.bincount(rank)  # (sentences,): never increasing
        start = lengths.cumsum(0) - lengths  # (sentences,)
        nodes = torch.empty_like(leaves).index_copy(0, start[rank] + packing.step, leaves)
        # Integers need no gradient: the last token of every node, the number of the largest node
        # that ends at every token, and the reductions; all (sentences, longest).
        ends = torch.arange(longest, device=device).expand(len(lengths), longest)
        largest, tree = start.unsqueeze(1) + ends, torch.zeros_like(ends)
        made, count = [nodes], len(nodes)
        for layer in range(1, longest):
            active, most = packing.sizes[layer], longest - layer
            pair_counts = lengths[:active] - layer  # (active,)
            valid = torch.arange(most, device=device) < pair_counts.unsqueeze(1)  # (active, most)
            padded_at = valid.flatten().nonzero().squeeze(1)  # (pairs,)
            # Every sentence has one node more than pairs.
            left_at = torch.arange(len(padded_at), device=device) + padded_at // most  # (pairs,)
            left, right = nodes.index_select(0, left_at), nodes.index_select(0, left_at + 1)
            candidates = join_nodes(self.composition, left, right)  # (pairs, 2 hidden)
            choice = self._choose(candidates, valid, padded_at, sample)  # (active, most)
            reached = choice.cumsum(dim=1)  # (active, most): 1 from the choice on
            # Of candidate, left and right node: one is 1, the others are 0.
            weights = torch.stack([choice, 1 - reached, reached - choice], dim=2)
            weights = weights.flatten(0, 1).index_select(0, padded_at)  # (pairs, 3)
            sources = torch.stack([candidates, left, right], dim=1)  # (pairs, 3, 2 hidden)
            nodes = (weights.unsqueeze(2) * sources).sum(dim=1)  # (pairs, 2 hidden)
            place, first = choice.detach().argmax(dim=1), pair_counts.cumsum(0) - pair_counts
            # Nothing larger ends where the left one of the two does: its last copy is final.
            made += [part.index_select(0, first + place) for part in (left, nodes)]
            row, ends = torch.arange(active, device=device), ends[:active]
            right_end = ends[row, place + 1]  # (active,)
            tree[row, right_end] += 1
            largest[row, ends[row, place]] = count + row
            largest[row, right_end] = count + active + row
            count += 2 * active
            is_behind = torch.arange(most, device=device) >= place.unsqueeze(1)
            ends = torch.where(is_behind, ends[:, 1:], ends[:, :-1])  # (active, most)
        states = torch.cat(made).index_select(0, largest[rank, packing.step])
        return states[:, : self.output_dim], tree[rank, packing.step].unsqueeze(1)

    def _choose(self, candidates: Tensor, valid: Tensor, padded_at: Tensor, sample: bool) -> Tensor:
        """Returns the choice y (active, most) of the candidates (pairs, 2 hidden)."""
        query = self.query.to(candidates)
        h_alone = torch.cat([query, torch.zeros_like(query)])  # (2 hidden,): not c
        zeros = candidates.new_zeros(valid.numel())
        scores = zeros.index_copy(0, padded_at, candidates @ h_alone).view(valid.shape)
        return straight_through(scores, valid, self.temperature) if sample else best(scores, valid)
