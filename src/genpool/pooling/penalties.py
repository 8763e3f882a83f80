"""Terms that keep the heads of a pooling apart (the paper's Eq. 7-9, and Lin et al.'s).

The paper's three are hinges on the squared distance of two heads, summed over all pairs i < j:

    P = weight * sum_{i<j} max(threshold - distance(i, j), 0)

`threshold` is the paper's lambda, `weight` its mu. A hinge whose distance exceeds the threshold is
inactive: it adds nothing and its gradient is zero. With the usual initialization all hinges of the
parameter penalty are inactive from the first step (distances of 36 to 144 against a threshold of
1), so every penalty returns its distances and the share of active hinges beside the term.

`average` says how a batch has one term: "sentence" as in the paper, the mean of one hinge per
sentence; "batch" as in the released program, one hinge of the mean distance.

A tensor of the wrong shape, or an unknown average, raises an InputError.
"""

from __future__ import annotations

from itertools import combinations
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from genpool.errors import InputError
from genpool.tensors.modules import require_literal, require_tensor

Average = Literal["sentence", "batch"]


class Penalty(NamedTuple):
    """A penalty and its diagnosis.

    Attributes:
        term: scalar to add to the loss, weight included.
        distances: squared distances of the head pairs (0, 1), (0, 2), ..., detached: (pairs,), or
            (batch, pairs) where there is one hinge per sentence.
        active: scalar, the share of hinges that are active, from 0 to 1, detached.
    """

    term: Tensor
    distances: Tensor
    active: Tensor


def pair_distances(heads: Tensor) -> Tensor:
    """Returns the squared distances of all pairs i < j: (batch, heads, dim) -> (batch, pairs)."""
    # Pair by pair: one difference at a time takes little memory, and unlike |a|^2 + |b|^2 - 2ab it
    # keeps the precision of heads that are close together, which are the ones that matter.
    # Unbound once: the backward of every heads[:, i] would fill a tensor of the size of all heads.
    pairs = combinations(heads.unbind(dim=1), 2)
    distances = [(first - second).square().sum(dim=-1) for first, second in pairs]
    if not distances:
        return heads.new_zeros(heads.shape[0], 0)
    return torch.stack(distances, dim=1)  # (batch, pairs)


def parameter_penalty(w1: Tensor, threshold: float = 1.0, weight: float = 1.0) -> Penalty:
    """Penalty on parameter matrices (Eq. 7): distance = ||W1^i - W1^j||_F^2.

    w1 is `GeneralizedPooling.w1` (heads, hidden, input_dim), or another parameter per head.

    Example:
        >>> loss = loss + parameter_penalty(pooling.w1, weight=1e-2).term
    """
    _require("w1", w1, 3, "(heads, hidden, input_dim)")
    distances = pair_distances(w1.flatten(1).unsqueeze(0)).squeeze(0)  # (pairs,)
    return _hinge(distances, threshold, weight)


def attention_penalty(
    weights: Tensor, threshold: float = 1.0, weight: float = 1.0, average: Average = "sentence"
) -> Penalty:
    """Penalty on attention matrices (Eq. 8): distance = ||A^i - A^j||_F^2.

    weights are `Pooled.weights` (batch, heads, time, dim), whose zeros at padding add nothing.

    Example:
        >>> vector, heads, weights = pooling(states, mask)
        >>> loss = loss + attention_penalty(weights, weight=1e-2).term
    """
    _require("weights", weights, 4, "(batch, heads, time, dim)")
    return _hinge(pair_distances(weights.flatten(2)), threshold, weight, average)


def embedding_penalty(
    heads: Tensor, threshold: float = 1.0, weight: float = 1.0, average: Average = "sentence"
) -> Penalty:
    """Penalty on sentence embeddings (Eq. 9): distance = ||v^i - v^j||_2^2.

    heads are `Pooled.heads` (batch, heads, dim).

    Example:
        >>> vector, heads, weights = pooling(states, mask)
        >>> loss = loss + embedding_penalty(heads, weight=1e-2).term
    """
    _require("heads", heads, 3, "(batch, heads, dim)")
    return _hinge(pair_distances(heads), threshold, weight, average)


def scalar_attention_penalty(weights: Tensor, weight: float = 1.0) -> Penalty:
    """Penalty of Lin et al. (2017): ||A A^T - I||_F^2, averaged over the sentences.

    weights are `Pooled.weights` of scalar attention, (batch, heads, time, 1). The share of active
    hinges is 1, because this penalty has no hinge.

    Example:
        >>> vector, heads, weights = ScalarAttentionPooling(600)(states, mask)
        >>> loss = loss + scalar_attention_penalty(weights).term
    """
    _require("weights", weights, 4, "(batch, heads, time, 1)")
    if weights.shape[-1] != 1:
        raise InputError(
            f"weights have shape {tuple(weights.shape)}; Lin et al.'s penalty is for scalar "
            "attention, (batch, heads, time, 1). For vector-based attention use attention_penalty."
        )
    attention = weights.squeeze(-1)  # (batch, heads, time)
    eye = torch.eye(attention.shape[1], dtype=attention.dtype, device=attention.device)
    excess = attention @ attention.mT - eye  # (batch, heads, heads)
    term = weight * excess.square().sum(dim=(1, 2)).sum() / max(len(attention), 1)
    return Penalty(term, pair_distances(attention).detach(), torch.ones_like(term.detach()))


def _require(name: str, value: Tensor, dimensions: int, shape: str) -> None:
    require_tensor(name, value, f"a tensor {shape}")
    if value.dim() != dimensions:
        raise InputError(f"{name} has shape {tuple(value.shape)}; expected {shape}.")


def _hinge(
    distances: Tensor, threshold: float, weight: float, average: Average = "sentence"
) -> Penalty:
    """weight * sum over pairs of max(threshold - distance, 0), averaged over a leading batch."""
    require_literal("average", average, Average)
    if average == "batch" and len(distances):  # an empty batch has no mean, and no hinge
        distances = distances.mean(dim=0)
    slack = (threshold - distances).relu()  # (..., pairs)
    sentences = distances.shape[0] if distances.dim() == 2 else 1
    term = weight * slack.sum() / max(sentences, 1)
    active = (slack > 0).sum() / max(slack.numel(), 1)
    return Penalty(term, distances.detach(), active.to(distances.dtype).detach())
