"""Terms that keep the heads of a pooling apart (the paper's Eq. 7-9, and Lin et al.'s).

The paper's three are hinges on the squared distance of two heads, summed over all pairs i < j:

    P = mu * sum_{i<j} max(lambda - distance(i, j), 0)

`threshold` is the paper's lambda, `weight` its mu. A hinge whose distance exceeds the threshold is
asleep: it adds nothing and its gradient is zero. With the usual start the parameter penalty is
asleep from the first step (distances of 36 to 144 against a threshold of 1), so every penalty
returns its distances and the share of active hinges beside the term.
"""

from __future__ import annotations

from itertools import combinations
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from genpool.errors import InputError, unknown_name
from genpool.pooling.base import require_tensor

Average = Literal["sentence", "batch"]


class Penalty(NamedTuple):
    """A penalty and its diagnosis.

    term       ()              what to add to the loss, weight included
    distances  (..., pairs)    raw squared distances of the head pairs (0,1), (0,2), ..., detached
    active     ()              share of hinges that are awake, 0 to 1, detached
    """

    term: Tensor
    distances: Tensor
    active: Tensor


def pair_distances(heads: Tensor) -> Tensor:
    """Squared distances of all pairs i < j: heads (batch, heads, numbers) -> (batch, pairs)."""
    pairs = combinations(range(heads.shape[1]), 2)
    # Pair by pair: one difference at a time is small, and unlike |a|^2 + |b|^2 - 2ab it does not
    # lose the digits of near heads, which are the ones that matter.
    distances = [(heads[:, i] - heads[:, j]).square().sum(dim=-1) for i, j in pairs]
    if not distances:
        return heads.new_zeros(heads.shape[0], 0)
    return torch.stack(distances, dim=1)  # (batch, pairs)


def parameter_penalty(w1: Tensor, threshold: float = 1.0, weight: float = 1.0) -> Penalty:
    """Eq. 7, on parameter matrices: distance = ||W1^i - W1^j||_F^2.

    w1 (heads, hidden, input_dim), as `GeneralizedPooling.w1`; any other per-head parameter will do.
    """
    _require("w1", w1, 3, "(heads, hidden, input_dim)")
    distances = pair_distances(w1.flatten(1).unsqueeze(0)).squeeze(0)  # (pairs,)
    return _hinge(distances, threshold, weight)


def attention_penalty(
    weights: Tensor, threshold: float = 1.0, weight: float = 1.0, average: Average = "sentence"
) -> Penalty:
    """Eq. 8, on attention matrices: distance = ||A^i - A^j||_F^2.

    weights (batch, heads, time, dim), as `Pooled.weights`: padding holds zeros and adds nothing.
    average: "sentence" as in the paper, a hinge per sentence, then their mean; "batch" as in the
    released program, one hinge of the mean distance.
    """
    _require("weights", weights, 4, "(batch, heads, time, dim)")
    return _batch_hinge(pair_distances(weights.flatten(2)), threshold, weight, average)


def embedding_penalty(
    heads: Tensor, threshold: float = 1.0, weight: float = 1.0, average: Average = "sentence"
) -> Penalty:
    """Eq. 9, on sentence embeddings: distance = ||v^i - v^j||_2^2.

    heads (batch, heads, dim), as `Pooled.heads`; average as in `attention_penalty`.
    """
    _require("heads", heads, 3, "(batch, heads, dim)")
    return _batch_hinge(pair_distances(heads), threshold, weight, average)


def scalar_attention_penalty(weights: Tensor, weight: float = 1.0) -> Penalty:
    """Lin et al.'s ||A A^T - I||_F^2, averaged over the sentences.

    weights (batch, heads, time, 1), as `Pooled.weights` of scalar attention. It has no hinge, so
    its share of active ones is always 1.
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


def _require(name: str, value: object, dimensions: int, shape: str) -> None:
    require_tensor(name, value, f"a tensor {shape}")
    if isinstance(value, Tensor) and value.dim() != dimensions:
        raise InputError(f"{name} has shape {tuple(value.shape)}; expected {shape}.")


def _batch_hinge(distances: Tensor, threshold: float, weight: float, average: Average) -> Penalty:
    if average not in ("sentence", "batch"):
        raise InputError(unknown_name("average", average, ("sentence", "batch")))
    if average == "batch" and len(distances):  # an empty batch has no mean, and no hinge
        return _hinge(distances.mean(dim=0), threshold, weight)
    return _hinge(distances, threshold, weight)


def _hinge(distances: Tensor, threshold: float, weight: float) -> Penalty:
    """mu * sum over pairs of max(lambda - distance, 0), averaged over a leading batch if any."""
    slack = (threshold - distances).relu()  # (..., pairs)
    sentences = distances.shape[0] if distances.dim() == 2 else 1
    term = weight * slack.sum() / max(sentences, 1)
    awake = (slack > 0).sum() / max(slack.numel(), 1)
    return Penalty(term, distances.detach(), awake.to(distances.dtype).detach())
