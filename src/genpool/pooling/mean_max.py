"""Mean and max pooling concatenated (CAFE, Tay et al. 2018)."""

from __future__ import annotations

import torch
from torch import Tensor

from genpool.pooling.base import Pooled, Pooling
from genpool.pooling.masking import masked_max, masked_mean


class MeanMaxPooling(Pooling):
    """Mean and max pooling concatenated, v = [mean ; max]. The two parts are its two heads.

    Args:
        input_dim: dimensions of a token state.

    Raises:
        InputError: input_dim is not a whole number of 1 or more.

    Example:
        >>> pooled = MeanMaxPooling(600)(states, mask)   # states (batch, time, 600)
        >>> pooled.vector.shape     # (batch, 2 * 600)
    """

    def __init__(self, input_dim: int) -> None:
        super().__init__(input_dim, heads=2)

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        """Pools a batch of sentences.

        Args:
            states: token states (batch, time, input_dim).
            mask: (batch, time), True or 1 at real tokens, False or 0 at padding.

        Returns:
            Vectors (batch, 2 * input_dim), heads (batch, 2, input_dim), no weights.

        Raises:
            InputError: a shape or a type does not fit.
        """
        mask = self.check(states, mask)
        parts = [masked_mean(states, mask), masked_max(states, mask)]  # 2 x (batch, input_dim)
        heads = torch.stack(parts, dim=1)  # (batch, 2, input_dim)
        return Pooled(heads.flatten(1), heads, None)
