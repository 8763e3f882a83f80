"""Neural tree indexers: a full binary tree over the states of an LSTM (Munkhdalai & Yu 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from genpool.encoder.lstm import LSTMDirection
from genpool.reproduction.encoders.shared import PackedEncoder, initialize_parts, lstm_leaves
from genpool.tensors.modules import require_positive
from genpool.tensors.packing import Packing


class NTIEncoder(PackedEncoder):
    """NTI-SLSTM-LSTM (Munkhdalai & Yu 2017): an LSTM at the leaves, S-LSTM nodes above them.

    Leaves are the states and cells of an LSTM. Neighbours are joined in pairs, level by level, by
    the S-LSTM of Zhu et al. (2015), which sees the cells too:

        i, f_l, f_r = sig(W [h_l ; h_r ; c_l ; c_r] + b)
        c = f_l c_l + f_r c_r + i tanh(W [h_l ; h_r] + b)
        h = sig(W [h_l ; h_r ; c] + b) tanh(c)

    The original pads sentences to a power of two. Here a node whose right sibling is padding moves
    up unchanged, so that the vector does not depend on the padding. The tree is the same for all
    sentences of a length: no parse is read. A token's state is the largest node that ends at it, so
    that the last token's is the root: with last pooling the vector is the paper's.

    Chosen here: initial weights of the nodes (Xavier, biases 0). The published model has
    hidden_dim 300.

    Args:
        hidden_dim: dimensions of a leaf and of a node. Default: 300.

    Example:
        >>> states, _ = NTIEncoder(300)(vectors, mask)   # (batch, time, 300)
    """

    def __init__(self, input_dim: int, hidden_dim: int = 300) -> None:
        require_positive(input_dim=input_dim, hidden_dim=hidden_dim)
        super().__init__(input_dim, output_dim=hidden_dim)
        self.leaves = LSTMDirection(input_dim, hidden_dim)
        self.gates = nn.Linear(4 * hidden_dim, 3 * hidden_dim)
        self.candidate = nn.Linear(2 * hidden_dim, hidden_dim)
        self.output_gate = nn.Linear(3 * hidden_dim, hidden_dim)
        for layer, parts in ((self.gates, 3), (self.candidate, 1), (self.output_gate, 1)):
            initialize_parts(layer, parts)

    def join(self, left: Tensor, right: Tensor) -> Tensor:
        """Returns the nodes [h ; c] above pairs of children; all are (pairs, 2 hidden)."""
        hidden = self.output_dim
        (h_left, c_left) = torch.split(left, hidden, 1)
        (h_right, c_right) = torch.split(right, hidden, 1)
        states = torch.cat([h_left, h_right], dim=1)  # (pairs, 2 hidden)
        gates = self.gates(torch.cat([states, c_left, c_right], dim=1)).sigmoid()
        i, f_left, f_right = gates.chunk(3, dim=1)  # 3 x (pairs, hidden)
        c = f_left * c_left + f_right * c_right + i * self.candidate(states).tanh()
        o = self.output_gate(torch.cat([states, c], dim=1)).sigmoid()
        return torch.cat([o * c.tanh(), c], dim=1)

    def states(self, rows: Tensor, packing: Packing) -> Tensor:
        leaves = lstm_leaves(self.leaves, rows, packing.sizes)  # (rows, 2 hidden)
        counts = packing.lengths()  # (batch,)
        starts = counts.cumsum(0) - counts  # (batch,)
        at_leaf = starts[packing.sentence] + packing.step  # (rows,): place among the leaves
        nodes = torch.empty_like(leaves).index_copy(0, at_leaf, leaves)  # sentence by sentence
        is_last = packing.step == counts[packing.sentence] - 1  # (rows,)
        levels, top, before = [nodes], at_leaf, 0
        for level in range(1, (len(packing.sizes) - 1).bit_length() + 1):
            nodes, counts, starts, below = self._next_level(nodes, counts, starts)
            levels.append(nodes)
            before += below
            # A node of this level ends at every (2 ** level)-th token, and at the last one.
            ends = ((packing.step + 1) % (1 << level) == 0) | is_last  # (rows,)
            place = before + starts[packing.sentence] + (packing.step >> level)
            top = torch.where(ends, place, top)
        return torch.cat(levels).index_select(0, top)[:, : self.output_dim]

    def _next_level(
        self, nodes: Tensor, counts: Tensor, starts: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, int]:
        """Returns nodes (n, 2 hidden), their counts and starts (batch,), and the number below."""
        above = (counts + 1) // 2  # (batch,)
        above_starts = above.cumsum(0) - above  # (batch,)
        sentence = torch.arange(len(above), device=above.device).repeat_interleave(above)  # (n,)
        place = torch.arange(len(sentence), device=above.device) - above_starts[sentence]  # (n,)
        left = starts[sentence] + 2 * place  # (n,)
        pairs = (2 * place + 1 < counts[sentence]).nonzero().squeeze(1)  # those with two children
        moved = nodes.index_select(0, left)  # (n, 2 hidden)
        if len(pairs):
            rights = nodes.index_select(0, left[pairs] + 1)
            joined = self.join(moved.index_select(0, pairs), rights)
            moved = moved.index_copy(0, pairs, joined.to(moved.dtype))
        return moved, above, above_starts, len(nodes)
