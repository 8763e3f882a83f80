"""Gumbel TreeLSTM: a binary tree that the encoder chooses itself (Choi et al. 2018).

The nodes [h ; c] of all sentences are the rows of one tensor, sentence after sentence, without
padding. Pair p of a layer is the row left[p] with the row behind it, and row p of the next layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
    """Returns one-hot choices (batch, pairs), drawn from the softmax of the logits (batch, pairs).

    The values are those of the largest logit with Gumbel noise; the gradient is that of the softmax
    of the same noisy logits (straight-through Gumbel-softmax). valid (batch, pairs): what may be
    chosen; a row without any has zeros.
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
        sizes = torch.tensor(packing.sizes, device=leaves.device)  # (longest,)
        sentences, longest, rows = packing.sizes[0], len(packing.sizes), len(leaves)
        # Long sentences first, as in the packing: those that are not finished are the first ones.
        rank = torch.arange(rows, device=leaves.device) - (sizes.cumsum(0) - sizes)[packing.step]
        lengths = torch.bincount(rank, minlength=sentences)  # (sentences,): never increasing
        at_leaf = (lengths.cumsum(0) - lengths)[rank] + packing.step  # (rows,)
        nodes = torch.empty_like(leaves).index_copy(0, at_leaf, leaves)  # sentence by sentence
        progress = _Progress(sentences, longest, leaves.device)
        for layer in range(1, longest):
            active = packing.sizes[layer]
            pairs = _Pairs.of_layer(lengths[:active] - layer, longest - layer)
            # The sentences behind the active ones have one node each, their root.
            finished = packing.sizes[layer - 1] - active
            nodes, roots = torch.split(nodes, [len(pairs.left) + active, finished])
            progress.finish(roots, active)
            left = nodes.index_select(0, pairs.left)  # (pairs, 2 hidden)
            right = nodes.index_select(0, pairs.left + 1)  # (pairs, 2 hidden)
            candidates = join_nodes(self.composition, left, right)  # (pairs, 2 hidden)
            choice = self._choose(candidates, pairs, sample)  # (active, longest - layer)
            place = choice.detach().argmax(dim=1)  # (active,)
            progress.join(place, left.index_select(0, pairs.first + place))
            reached = choice.cumsum(dim=1)  # (active, longest - layer): 1 from the choice on
            # Of candidate, left and right node: one is 1, the others are 0.
            weights = torch.stack([choice, 1 - reached, reached - choice], dim=2)
            weights = weights.flatten(0, 1).index_select(0, pairs.place)  # (pairs, 3)
            sources = torch.stack([candidates, left, right], dim=1)  # (pairs, 3, 2 hidden)
            nodes = (weights.unsqueeze(2) * sources).sum(dim=1)  # (pairs, 2 hidden)
        progress.finish(nodes, 0)
        at = rank * longest + packing.step  # (rows,)
        return progress.states(at)[:, : self.output_dim], progress.tree.flatten()[at].unsqueeze(1)

    def _choose(self, candidates: Tensor, pairs: _Pairs, sample: bool) -> Tensor:
        """Returns the choice y (active, longest - layer) of the candidates (pairs, 2 hidden)."""
        query = self.query.to(candidates)
        h_alone = torch.cat([query, torch.zeros_like(query)])  # (2 hidden,): not c
        scores = pairs.padded(candidates @ h_alone)  # (active, longest - layer)
        if sample:
            return straight_through(scores, pairs.valid, self.temperature)
        return best(scores, pairs.valid)


class _Pairs(NamedTuple):
    """The neighbouring nodes of a layer, sentence after sentence."""

    left: Tensor  # (pairs,): the row of the left node; the right one is behind it
    first: Tensor  # (active,): the first pair of every sentence
    valid: Tensor  # (active, most): which pairs of a padded tensor exist
    place: Tensor  # (pairs,): where they are in it, flattened

    @classmethod
    def of_layer(cls, counts: Tensor, most: int) -> _Pairs:
        """Returns the pairs of sentences with counts (active,) of them; most: the largest count."""
        valid = torch.arange(most, device=counts.device) < counts.unsqueeze(1)  # (active, most)
        place = valid.flatten().nonzero().squeeze(1)  # (pairs,)
        # Every sentence has one node more than pairs.
        left = torch.arange(len(place), device=counts.device) + place // most  # (pairs,)
        return cls(left, counts.cumsum(0) - counts, valid, place)

    def padded(self, values: Tensor) -> Tensor:
        """Returns values (pairs,) as (active, most), zeros where there is no pair."""
        zeros = values.new_zeros(self.valid.numel())
        return zeros.index_copy(0, self.place, values).view(self.valid.shape)


class _Progress:
    """Which nodes are where while the trees grow, and the states that are final.

    A node's place in its sentence and its last token are integers: they need no gradient.
    """

    def __init__(self, sentences: int, longest: int, device: torch.device) -> None:
        self.ends = torch.arange(longest, device=device).expand(sentences, longest)
        self.first = torch.arange(sentences, device=device) * longest  # (sentences,)
        self.tree = torch.zeros(sentences, longest, dtype=torch.long, device=device)
        self.final_rows: list[Tensor] = []
        self.final_at: list[Tensor] = []

    def finish(self, roots: Tensor, active: int) -> None:
        """Takes the roots (n, 2 hidden) of the sentences from `active` on, which are complete."""
        self._take(roots, self.ends[active:, 0], self.first[active:])
        self.ends, self.first = self.ends[:active], self.first[:active]

    def join(self, place: Tensor, left: Tensor) -> None:
        """Records that the nodes at place and place + 1 of every sentence were joined.

        left (active, 2 hidden): the left nodes of them.
        """
        rows = torch.arange(len(place), device=place.device)  # (active,)
        # Nothing larger will end where the left one of the two does: its state is final.
        self._take(left, self.ends[rows, place], self.first)
        right_end = self.ends[rows, place + 1]
        self.tree[rows, right_end] += 1
        behind = torch.arange(self.ends.shape[1] - 1, device=place.device) >= place.unsqueeze(1)
        self.ends = torch.where(behind, self.ends[:, 1:], self.ends[:, :-1])

    def states(self, at: Tensor) -> Tensor:
        """Returns the final states of the tokens at (rows,), as places in (sentences * longest)."""
        rows, where = torch.cat(self.final_rows), torch.cat(self.final_at)
        order = torch.empty(self.tree.numel(), dtype=torch.long, device=at.device)
        order[where] = torch.arange(len(where), device=at.device)
        return rows.index_select(0, order[at])

    def _take(self, rows: Tensor, ends: Tensor, first: Tensor) -> None:
        self.final_rows.append(rows)
        self.final_at.append(first + ends)
