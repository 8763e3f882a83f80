"""How much a token matters: what the vectors of a sentence become when its state is left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genpool.pooling import Pooled
from genpool.tensors.packing import Packing
from genpool.tensors.unit_rows import unit_rows

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LeaveOneOut:
    """The vectors of one sentence, and the same vectors with each token left out of the pooling.

    A sentence of one token has zeros without it.

    Attributes:
        vector: the sentence vector, (output_dim,).
        heads: the vector of each head, (heads, dim).
        vector_without: (tokens, output_dim), the sentence vector without each token.
        heads_without: (heads, tokens, dim), the vector of each head without each token.
    """

    vector: Floats
    heads: Floats
    vector_without: Floats
    heads_without: Floats

    @classmethod
    def of(
        cls, pooled: Pooled, heads_without: Tensor, project: Callable[[Pooled], Pooled]
    ) -> LeaveOneOut:
        """Returns the vectors of a batch of one sentence.

        Args:
            pooled: the pooled sentence, before the projection.
            heads_without: (1, heads, tokens, dim), from `Pooling.heads_without`.
            project: the projection of the model.
        """
        by_token = heads_without[0].transpose(0, 1)  # (tokens, heads, dim)
        without = project(Pooled(by_token.flatten(1), by_token, None)).vector
        return cls(
            vector=_floats(project(pooled).vector[0]),
            heads=_floats(pooled.heads[0]),
            vector_without=_floats(without),
            heads_without=_floats(heads_without[0]),
        )

    @property
    def vector_turns(self) -> Floats:
        """(tokens,): degrees between the sentence vector and the one without each token."""
        return degrees_between(self.vector, self.vector_without)

    @property
    def head_turns(self) -> Floats:
        """(heads, tokens): degrees between each head's vector and the one without each token."""
        return degrees_between(self.heads[:, None], self.heads_without)


def degrees_between(first: Floats, second: Floats) -> Floats:
    """Returns the angle of vectors (..., dim), from 0 to 180 degrees.

    A vector of zeros has no direction: its angle with any other counts as 90 degrees (cosine 0),
    with another vector of zeros as 0.
    """
    first, second = unit_rows(first), unit_rows(second)
    # The arc cosine has no accurate digits for small angles, which are the most frequent here.
    difference = np.linalg.norm(first - second, axis=-1)
    total = np.linalg.norm(first + second, axis=-1)
    angles: Floats = np.degrees(2 * np.arctan2(difference, total))
    return angles


def cosines(first: Floats, second: Floats) -> Floats:
    """Returns the cosines of vectors (..., dim); 0 where one of them is zeros."""
    products: Floats = (unit_rows(first) * unit_rows(second)).sum(axis=-1)
    return products


def pooling_weights(states: Tensor, packing: Packing, pool: Callable[[Tensor], Pooled]) -> Tensor:
    """Returns the weights (batch, heads, time, dim or 1) of any pooling, also of max and mean.

    A dimension of a max, mean or last vector depends on the same dimension of the states alone,
    and linearly: its derivative by each token's state is that token's weight.

    Args:
        states: packed states (rows, dim).
        packing: where the rows belong.
        pool: pools packed states, with weights if the pooling has them.
    """
    with torch.enable_grad():
        rows = states.detach().requires_grad_()
        pooled = pool(rows)
        if pooled.weights is not None:
            return pooled.weights.detach()
        if not rows.numel():
            batch, heads, dim = pooled.heads.shape
            return rows.new_zeros(batch, heads, packing.shape[1], dim)
        gradients = [
            torch.autograd.grad(head.sum(), rows, retain_graph=True)[0]  # (rows, dim)
            for head in pooled.heads.unbind(dim=1)
        ]
    return torch.stack([packing.unpack(gradient) for gradient in gradients], dim=1)


def _floats(tensor: Tensor) -> Floats:
    values: Floats = tensor.detach().double().cpu().numpy()
    return values
