"""Directional self-attention (DiSAN, Shen et al. 2017).

    s_i = sum_j softmax_j(5 tanh((key_j + query_i) / 5)) * source_j      over the pairs (i, j)

This attention has a value for every dimension of every pair of tokens. In a batch padded to its
longest sentence most of them are wasted, and in training those of real pairs would fill the memory.
So only listed pairs are computed, a block at a time, and computed again in the backward pass
(`attend_pairs`). `attend` is the equation as it is written, on padded tensors: the plain form, and
that of exported graphs.

On a CPU tanh takes six times as long as sigmoid, and exp three times as long as exp2. A factor that
all weights have in common cancels out, so that with z = sigmoid(0.4 (key_j + query_i))

    5 tanh(x / 5) = 10 sigmoid(0.4 x) - 5      weights 2 ** (10 log2(e) z), slope 4 z (1 - z)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import e, log2
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.reproduction.encoders.shared import PackedEncoder
from genpool.tensors.modules import fast, require_positive
from genpool.tensors.packing import Packing

#: values of all dimensions that are computed at a time: few enough for the cache of a processor
MAX_BLOCK_VALUES = 1 << 16
#: log2 of a weight for z = 1; for z = 0 it is 0
LOG2_RANGE = 10 * log2(e)


class Pairs(NamedTuple):
    """Row query[p] attends to row source[p]; both (pairs,)."""

    query: Tensor
    source: Tensor

    def blocks(self, dim: int) -> list[Pairs]:
        """Returns the pairs in blocks of at most MAX_BLOCK_VALUES values of dim dimensions."""
        size = max(1, MAX_BLOCK_VALUES // dim)
        queries, sources = torch.split(self.query, size), torch.split(self.source, size)
        return [Pairs(*block) for block in zip(queries, sources, strict=True)]


def directed_pairs(packing: Packing, reverse: bool, chosen: Tensor | None = None) -> Pairs:
    """Returns all pairs of a token and one before it (after it, if reverse) in its sentence.

    chosen (rows, 2): the rows that attend, and those attended to. Default: None, all.
    """
    rows = torch.arange(len(packing.index), device=packing.index.device)  # (rows,)
    chosen = torch.ones_like(rows).bool().unsqueeze(1).expand(-1, 2) if chosen is None else chosen
    heads, dependents = packing.align(chosen).unbind(dim=2)  # 2 x (batch, longest)
    position = rows[: len(packing.sizes)]  # (longest,)
    own = position.unsqueeze(1)  # (longest, 1)
    in_direction = position > own if reverse else position < own  # (longest, longest)
    allowed = heads.unsqueeze(2) & dependents.unsqueeze(1) & in_direction
    sentence, query, source = allowed.nonzero(as_tuple=True)  # 3 x (pairs,)
    row_at = packing.align(rows.unsqueeze(1)).squeeze(2)  # (batch, longest)
    return Pairs(row_at[sentence, query], row_at[sentence, source])


def attend_pairs(sources: Tensor, keys: Tensor, queries: Tensor, pairs: Pairs) -> Tensor:
    """Returns s (rows, dim); zeros for a row that attends to none.

    sources, keys, queries (rows, dim). Computed in single precision or better.
    """
    wide = torch.promote_types(sources.dtype, torch.float32)
    with torch.autocast(sources.device.type, enabled=False):
        rows = sources.to(wide), keys.to(wide), queries.to(wide)
        if fast():
            seen: Tensor = _PairAttention.apply(pairs, *rows)  # type: ignore[no-untyped-call]
        else:
            allowed = pairs.query.new_zeros(len(sources), len(sources)).bool()  # (rows, rows)
            allowed[pairs.query, pairs.source] = True
            seen = attend(*(values.unsqueeze(0) for values in (*rows, allowed)))[0]
    return seen.to(sources.dtype)


def _activations(keys: Tensor, queries: Tensor, block: Pairs) -> tuple[Tensor, Tensor]:
    """Returns z and the undivided weights (pairs, dim) of 0.4 keys and 0.4 queries (rows, dim)."""
    z = keys.index_select(0, block.source)
    z.add_(queries.index_select(0, block.query)).sigmoid_()
    # Between 1 and exp(10): no maximum has to be subtracted.
    return z, (LOG2_RANGE * z).exp2_()


class _PairAttention(torch.autograd.Function):
    """All pairs as one node of the graph, which keeps rows and not pairs for the backward pass."""

    @staticmethod
    def forward(ctx: Any, pairs: Pairs, sources: Tensor, keys: Tensor, queries: Tensor) -> Tensor:
        keys, queries = 0.4 * keys, 0.4 * queries  # 2 x (rows, dim)
        total, weight = torch.zeros_like(sources), torch.zeros_like(sources)  # 2 x (rows, dim)
        for block in pairs.blocks(sources.shape[1]):
            _, powers = _activations(keys, queries, block)
            weight.index_add_(0, block.query, powers)
            powers.mul_(sources.index_select(0, block.source))
            total.index_add_(0, block.query, powers)
        # A row without pairs has no weight: 0 / 1.
        weight.masked_fill_(weight == 0, 1)
        seen = total.div_(weight)  # (rows, dim): s
        ctx.save_for_backward(sources, keys, queries, weight, seen)
        ctx.pairs = pairs
        return seen

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        sources, keys, queries, weight, seen = ctx.saved_tensors
        share = grads[0] / weight  # (rows, dim): the gradient of s_i for each unit of weight
        grad_sources, grad_keys, grad_queries = (torch.zeros_like(sources) for _ in range(3))
        for block in ctx.pairs.blocks(sources.shape[1]):
            z, powers = _activations(keys, queries, block)
            powers.mul_(share.index_select(0, block.query))  # weights * gradient of s_i
            grad_sources.index_add_(0, block.source, powers)
            centred = sources.index_select(0, block.source)
            centred.sub_(seen.index_select(0, block.query))  # m_j - s_i
            # z (1 - z); the factor 4 of the slope is multiplied once for each row.
            grad = powers.mul_(centred).mul_(z.addcmul_(z, z, value=-1))  # (pairs, dim)
            grad_keys.index_add_(0, block.source, grad)
            grad_queries.index_add_(0, block.query, grad)
        return None, grad_sources, grad_keys.mul_(4), grad_queries.mul_(4)


def attend(sources: Tensor, keys: Tensor, queries: Tensor, allowed: Tensor) -> Tensor:
    """Returns s_i = sum_j softmax_j(5 tanh((key_j + query_i) / 5)) * source_j, per dimension.

    sources, keys, queries (batch, time, dim); allowed (batch, time, time): the j that each i may
    attend to. An i that may attend to none gets zeros. -> (batch, time, dim)
    """
    logits = 5 * torch.tanh((keys.unsqueeze(1) + queries.unsqueeze(2)) / 5)
    # tanh keeps the logits within 5, so that -1e4 has weight 0 in every floating-point type.
    logits = logits.masked_fill(~allowed.unsqueeze(-1), -1e4)  # (batch, time, time, dim)
    weights = logits.softmax(dim=2).masked_fill(~allowed.unsqueeze(-1), 0)
    return (weights * sources.unsqueeze(1)).sum(dim=2)  # (batch, time, dim)


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

    def hidden(self, tokens: Tensor) -> Tensor:
        """Returns m (..., hidden) of token vectors (..., input_dim)."""
        return functional.elu(self.inputs(tokens))

    def context(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Returns s of padded m (batch, time, hidden); mask (batch, time): what is attended to."""
        position = torch.arange(hidden.shape[1], device=hidden.device)  # (time,)
        own = position.unsqueeze(1)  # (time, 1)
        in_direction = position > own if self.reverse else position < own  # (time, time)
        allowed = in_direction & mask.unsqueeze(1)  # (batch, time, time)
        return attend(hidden, self.key(hidden), self.query(hidden), allowed)

    def context_of_pairs(self, hidden: Tensor, pairs: Pairs) -> Tensor:
        """Returns s (rows, hidden) of packed m (rows, hidden): the same without padding."""
        return attend_pairs(hidden, self.key(hidden), self.query(hidden), pairs)

    def fuse(self, hidden: Tensor, context: Tensor) -> Tensor:
        """Returns f * m + (1 - f) * s of m and s, all (..., hidden)."""
        gate = torch.sigmoid(self.gate_own(hidden) + self.gate_seen(context))
        fused: Tensor = gate * hidden + (1 - gate) * context
        return fused


def in_both_directions(
    parts: Iterable[DirectionalAttention],
    tokens: Tensor,
    context: Callable[[DirectionalAttention, Tensor], Tensor],
) -> Tensor:
    """Returns states (..., 2 hidden) of tokens (..., input_dim); context returns s for m."""
    halves = []
    for part in parts:
        hidden = part.hidden(tokens)  # (..., hidden): m
        halves.append(part.fuse(hidden, context(part, hidden)))
    return torch.cat(halves, dim=-1)


class DiSANEncoder(PackedEncoder):
    """Directional self-attention (DiSAN, Shen et al. 2017), both directions concatenated.

    The original pools it with `SourceToTokenPooling`. Attention per dimension has time^2 * dim
    values, which are computed block by block and never kept (`attend_pairs`).

    Args:
        hidden_dim: dimensions of each direction. Default: 300.

    Example:
        >>> states, _ = DiSANEncoder(300)(vectors, mask)   # (batch, time, 2 * 300)
    """

    bidirectional = True

    def __init__(self, input_dim: int, hidden_dim: int = 300) -> None:
        require_positive(input_dim=input_dim, hidden_dim=hidden_dim)
        super().__init__(input_dim, output_dim=2 * hidden_dim)
        self.forwards = DirectionalAttention(input_dim, hidden_dim, reverse=False)
        self.backwards = DirectionalAttention(input_dim, hidden_dim, reverse=True)

    def states(self, rows: Tensor, packing: Packing) -> Tensor:
        def context(part: DirectionalAttention, hidden: Tensor) -> Tensor:
            return part.context_of_pairs(hidden, directed_pairs(packing, part.reverse))

        return in_both_directions((self.forwards, self.backwards), rows, context)

    def padded_states(self, tokens: Tensor, mask: Tensor, lstm: object) -> Tensor:
        parts = self.forwards, self.backwards
        return in_both_directions(parts, tokens, lambda part, hidden: part.context(hidden, mask))
