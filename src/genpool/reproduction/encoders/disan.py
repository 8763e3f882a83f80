"""Directional self-attention (DiSAN, Shen et al. 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.encoder.base import Encoder
from genpool.reproduction.encoders.pair_attention import Pairs, attend_pairs, directed_pairs
from genpool.tensors.checks import require_positive
from genpool.tensors.fast import fast
from genpool.tensors.packing import Packing

#: values in one (batch, queries, time, dim) block: longer sentences are computed in several blocks
MAX_BLOCK_VALUES = 1 << 24


def attend(sources: Tensor, keys: Tensor, queries: Tensor, allowed: Tensor) -> Tensor:
    """Returns s_i = sum_j softmax_j(5 tanh((key_j + query_i) / 5)) * source_j, per dimension.

    sources, keys (batch, time, dim); queries (batch, block, dim); allowed (batch, block, time): the
    j that each i may attend to. An i that may attend to none gets zeros. -> (batch, block, dim)
    """
    logits = 5 * torch.tanh((keys.unsqueeze(1) + queries.unsqueeze(2)) / 5)
    # tanh keeps the logits within 5, so that -1e4 has weight 0 in every floating-point type.
    logits = logits.masked_fill(~allowed.unsqueeze(-1), -1e4)  # (batch, block, time, dim)
    weights = logits.softmax(dim=2).masked_fill(~allowed.unsqueeze(-1), 0)
    return (weights * sources.unsqueeze(1)).sum(dim=2)  # (batch, block, dim)


class DirectionalAttention(nn.Module):
    """One direction: attention to the tokens before (or after) each token, and a fusion gate.

    m = elu(W x + b);  s = attend(m, W1 m, W2 m + b);  f = sigmoid(W3 m + W4 s + b)
    out = f * m + (1 - f) * s
    """

    def __init__(self, input_dim: int, hidden_dim: int, reverse: bool) -> None:
        super().__init__()
        self.reverse = reverse
        self.inputs = nn.Linear(input_dim, hidden_dim)
        self.key = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.query = nn.Linear(hidden_dim, hidden_dim)
        self.gate_own = nn.Linear(hidden_dim, hidden_dim)
        self.gate_seen = nn.Linear(hidden_dim, hidden_dim, bias=False)
        for layer in (self.inputs, self.key, self.query, self.gate_own, self.gate_seen):
            nn.init.xavier_uniform_(layer.weight)

    def forward(self, tokens: Tensor, mask: Tensor, blockwise: bool = True) -> Tensor:
        """Returns (batch, time, hidden) for tokens (batch, time, input_dim), mask (batch, time).

        blockwise: limit the memory by computing a block of queries at a time. An exported graph
        cannot choose a block by its size, and computes all of them at once.
        """
        hidden = self.hidden(tokens)  # (batch, time, hidden)
        return self.fuse(hidden, self.context(hidden, mask, blockwise))

    def hidden(self, tokens: Tensor) -> Tensor:
        """Returns m (..., hidden) of token vectors (..., input_dim)."""
        return functional.elu(self.inputs(tokens))

    def context(self, hidden: Tensor, mask: Tensor, blockwise: bool = True) -> Tensor:
        """Returns s (batch, time, hidden) of m (batch, time, hidden).

        mask (batch, time): True at the tokens that may be attended to.
        """
        keys, queries = self.key(hidden), self.query(hidden)
        position = torch.arange(hidden.shape[1], device=hidden.device)  # (time,)

        def context_of(block: Tensor, block_queries: Tensor) -> Tensor:
            here = block.unsqueeze(1)  # (block, 1)
            in_direction = position > here if self.reverse else position < here  # (block, time)
            return attend(hidden, keys, block_queries, in_direction & mask.unsqueeze(1))

        if not blockwise:
            return context_of(position, queries)
        size = max(1, MAX_BLOCK_VALUES // max(1, hidden.numel()))
        blocks = zip(torch.split(position, size), torch.split(queries, size, dim=1), strict=True)
        return torch.cat([context_of(*block) for block in blocks], dim=1)

    def context_of_pairs(self, hidden: Tensor, pairs: Pairs) -> Tensor:
        """Returns s (rows, hidden) of packed m (rows, hidden): the same without padding."""
        return attend_pairs(hidden, self.key(hidden), self.query(hidden), pairs)

    def fuse(self, hidden: Tensor, context: Tensor) -> Tensor:
        """Returns f * m + (1 - f) * s of m and s, all (..., hidden)."""
        gate = torch.sigmoid(self.gate_own(hidden) + self.gate_seen(context))
        fused: Tensor = gate * hidden + (1 - gate) * context
        return fused


class DiSANEncoder(Encoder):
    """Directional self-attention (DiSAN, Shen et al. 2017), both directions concatenated.

    The original pools it with `SourceToTokenPooling`. Attention per dimension has time^2 * dim
    values, which are computed block by block and never kept (`pair_attention`).

    Args:
        input_dim: dimensions of a token vector.
        hidden_dim: dimensions of each direction. Default: 300.

    Raises:
        InputError: a size is less than 1.

    Example:
        >>> states, _ = DiSANEncoder(300)(vectors, mask)   # (batch, time, 2 * 300)
    """

    bidirectional = True

    def __init__(self, input_dim: int, hidden_dim: int = 300) -> None:
        require_positive(input_dim=input_dim, hidden_dim=hidden_dim)
        super().__init__(input_dim, output_dim=2 * hidden_dim)
        self.forwards = DirectionalAttention(input_dim, hidden_dim, reverse=False)
        self.backwards = DirectionalAttention(input_dim, hidden_dim, reverse=True)

    def attend_both_ways(self, tokens: Tensor, mask: Tensor, blockwise: bool = True) -> Tensor:
        """Returns the states (batch, time, 2 hidden) of tokens (batch, time, input_dim)."""
        return torch.cat([part(tokens, mask, blockwise) for part in self._parts], dim=2)

    @property
    def _parts(self) -> tuple[DirectionalAttention, DirectionalAttention]:
        return self.forwards, self.backwards

    @staticmethod
    def _attend(rows: Tensor, packing: Packing, part: DirectionalAttention) -> Tensor:
        """Returns the states (rows, hidden) of one direction."""
        hidden = part.hidden(rows)  # (rows, hidden): m
        pairs = directed_pairs(packing, part.reverse)
        return part.fuse(hidden, part.context_of_pairs(hidden, pairs))

    def encode_rows(
        self, rows: Tensor, packing: Packing, gates: bool
    ) -> tuple[Tensor, Tensor | None]:
        if not packing.sizes:
            return rows.new_zeros(0, self.output_dim), None
        if fast():
            return torch.cat([self._attend(rows, packing, part) for part in self._parts], 1), None
        tokens = packing.align(rows)  # (batch, longest, input_dim)
        mask = packing.aligned_mask()  # (batch, longest)
        states = self.attend_both_ways(tokens, mask).flatten(0, 1)  # (batch * longest, 2 hidden)
        return states.index_select(0, packing.aligned_index()), None

    def padded_states(self, tokens: Tensor, mask: Tensor, lstm: object) -> Tensor:
        # A graph cannot choose blocks by their size.
        return self.attend_both_ways(tokens, mask, blockwise=False)
