"""Inner attention (Liu et al. 2016): tokens are weighted by comparison with the sentence's mean."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from genpool.pooling.base import Pooled, Pooling
from genpool.pooling.masking import hide_padding, masked_mean, masked_softmax, weighted_sum


def inner_weights(states: Tensor, mask: Tensor, wy: Tensor, wh: Tensor, w: Tensor) -> Tensor:
    """Returns alpha = softmax_t(w . tanh(Wy h_t + Wh r)) (batch, 1, time, 1), r the mean of h.

    states (batch, time, dim); wy, wh (dim, dim); w (dim,).
    """
    mean = masked_mean(states, mask)  # (batch, dim)
    clean = hide_padding(states, mask)  # (batch, time, dim)
    compared = torch.tanh(clean @ wy.T + (mean @ wh.T).unsqueeze(1))  # (batch, time, dim)
    logits = (compared @ w).unsqueeze(1).unsqueeze(-1)  # (batch, 1, time, 1)
    return masked_softmax(logits, mask)


class InnerAttentionPooling(Pooling):
    """Inner attention (Liu et al. 2016): one scalar weight per token, one head.

    alpha = softmax_t(w . tanh(Wy h_t + Wh mean(h))); v = sum_t alpha_t h_t.

    Args:
        input_dim: dimensions of a token state.

    Raises:
        InputError: input_dim is not a whole number of 1 or more.

    Example:
        >>> pooled = InnerAttentionPooling(600)(states, mask)   # states (batch, time, 600)
        >>> pooled.vector.shape     # (batch, 600)
    """

    def __init__(self, input_dim: int) -> None:
        super().__init__(input_dim)
        self.wy = nn.Parameter(torch.empty(input_dim, input_dim))
        self.wh = nn.Parameter(torch.empty(input_dim, input_dim))
        self.w = nn.Parameter(torch.empty(input_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Re-initializes: matrices Xavier uniform, w Gaussian of deviation input_dim ** -0.5."""
        nn.init.xavier_uniform_(self.wy)
        nn.init.xavier_uniform_(self.wh)
        nn.init.normal_(self.w, std=self.input_dim**-0.5)

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        """Pools a batch of sentences.

        Args:
            states: token states (batch, time, input_dim).
            mask: (batch, time), True or 1 at real tokens, False or 0 at padding.

        Returns:
            Vectors (batch, input_dim), heads (batch, 1, input_dim), weights (batch, 1, time, 1).

        Raises:
            InputError: a shape or a type does not fit.
        """
        mask = self.check(states, mask)
        weights = inner_weights(states, mask, self.wy, self.wh, self.w)
        heads = weighted_sum(weights, states, mask)  # (batch, 1, input_dim)
        return Pooled(heads.flatten(1), heads, weights)
