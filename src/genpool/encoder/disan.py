"""Directional self-attention (DiSAN, Shen et al. 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.encoder.base import Encoder, require_positive
from genpool.tensors.packing import Packing

#: numbers in one (batch, queries, time, dim) block: longer sentences are done in several blocks
BLOCK = 1 << 24


def attend(sources: Tensor, keys: Tensor, queries: Tensor, allowed: Tensor) -> Tensor:
    """s_i = sum_j softmax_j(5 tanh((key_j + query_i) / 5)) * source_j, per dimension.

    sources, keys (batch, time, dim); queries (batch, block, dim); allowed (batch, block, time):
    the j that each i may see. An i that may see none gets zeros.
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

    def forward(self, tokens: Tensor, real: Tensor) -> Tensor:
        """tokens (batch, time, input_dim), real (batch, time) -> (batch, time, hidden)."""
        own = functional.elu(self.inputs(tokens))  # (batch, time, hidden): m
        keys, queries = self.key(own), self.query(own)
        time = own.shape[1]
        position = torch.arange(time, device=own.device)  # (time,)
        block = max(1, BLOCK // max(1, own.numel()))
        seen = []
        for start in range(0, time, block):
            here = position[start : start + block].unsqueeze(1)  # (block, 1)
            before = position > here if self.reverse else position < here  # (block, time)
            allowed = before & real.unsqueeze(1)  # (batch, block, time)
            seen.append(attend(own, keys, queries[:, start : start + block], allowed))
        context = torch.cat(seen, dim=1)  # (batch, time, hidden): s
        gate = torch.sigmoid(self.gate_own(own) + self.gate_seen(context))
        fused: Tensor = gate * own + (1 - gate) * context
        return fused


class DiSANEncoder(Encoder):
    """Forward and backward directional self-attention, concatenated.

    The original pools it with `SourceToTokenPooling`. Attention per dimension needs time^2 * dim
    numbers while training; without gradients they are made block by block.
    """

    bidirectional = True

    def __init__(self, input_dim: int, hidden_dim: int = 300) -> None:
        require_positive(input_dim=input_dim, hidden_dim=hidden_dim)
        super().__init__(input_dim, output_dim=2 * hidden_dim)
        self.forwards = DirectionalAttention(input_dim, hidden_dim, reverse=False)
        self.backwards = DirectionalAttention(input_dim, hidden_dim, reverse=True)

    def encode_rows(
        self, rows: Tensor, packing: Packing, gates: bool
    ) -> tuple[Tensor, Tensor | None]:
        if not packing.sizes:
            return rows.new_zeros(0, self.output_dim), None
        tokens = packing.align(rows)  # (batch, longest, input_dim)
        real = packing.align(torch.ones_like(rows[:, :1])).squeeze(-1) > 0  # (batch, longest)
        both = [self.forwards(tokens, real), self.backwards(tokens, real)]
        states = torch.cat(both, dim=2).flatten(0, 1)  # (batch * longest, 2 hidden)
        return states.index_select(0, packing.aligned_index()), None
