"""Scalar multi-head self-attention (Lin et al. 2017): one weight per token and head."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from genpool.pooling.base import Pooled, Pooling, require_positive, require_std
from genpool.pooling.masking import hide_padding, masked_softmax, weighted_sum


def scalar_weights(states: Tensor, mask: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    """Returns A = softmax(W2 tanh(W1 H^T)) over the real tokens, (batch, heads, time, 1).

    states (batch, time, input_dim); w1 (hidden, input_dim); w2 (heads, hidden).
    """
    inner = torch.tanh(hide_padding(states, mask) @ w1.T)  # (batch, time, hidden)
    logits = (inner @ w2.T).mT.unsqueeze(-1)  # (batch, heads, time, 1)
    return masked_softmax(logits, mask)


class ScalarAttentionPooling(Pooling):
    """Structured self-attention (Lin et al. 2017): A = softmax(W2 tanh(W1 H^T)), v = A H flattened.

    Args:
        input_dim: dimensions of a token state.
        heads: number of weights per token (their r). Default: 5.
        hidden_dim: width of the tanh layer that all heads share (their d_a). Default: None, half of
            input_dim.
        initial_std: standard deviation of the Gaussian from which W1 and W2 start, as in
            `GeneralizedPooling`, whose default is 0.01: a comparison of the two poolings should
            start both alike. Default: None, Xavier uniform.

    Raises:
        InputError: a size is not a whole number of 1 or more, or initial_std is negative.

    Example:
        >>> pooled = ScalarAttentionPooling(600, heads=7)(states, mask)   # (batch, time, 600)
        >>> pooled.vector.shape, pooled.weights.shape   # (batch, 4200), (batch, 7, time, 1)
    """

    keeps_weight_ratios = True
    penalties = ("attention", "embedding", "scalar")

    def __init__(
        self,
        input_dim: int,
        heads: int = 5,
        hidden_dim: int | None = None,
        *,
        initial_std: float | None = None,
    ) -> None:
        super().__init__(input_dim, heads)
        self.hidden_dim = max(1, input_dim // 2) if hidden_dim is None else hidden_dim
        require_positive("hidden_dim", self.hidden_dim)
        if initial_std is not None:
            require_std("initial_std", initial_std)
        self.initial_std = initial_std
        self.w1 = nn.Parameter(torch.empty(self.hidden_dim, input_dim))
        self.w2 = nn.Parameter(torch.empty(heads, self.hidden_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Re-initializes W1 and W2: Gaussian of initial_std, or Xavier uniform where it is None."""
        for weight in (self.w1, self.w2):
            if self.initial_std is None:
                nn.init.xavier_uniform_(weight)
            else:
                nn.init.normal_(weight, std=self.initial_std)

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        """Pools a batch of sentences.

        Args:
            states: token states (batch, time, input_dim).
            mask: (batch, time), True or 1 at real tokens, False or 0 at padding.

        Returns:
            Vectors (batch, heads * input_dim), heads (batch, heads, input_dim), weights (batch,
            heads, time, 1).

        Raises:
            InputError: a shape or a type does not fit.
        """
        mask = self.check(states, mask)
        weights = scalar_weights(states, mask, self.w1, self.w2)
        heads = weighted_sum(weights, states, mask)  # (batch, heads, input_dim)
        return Pooled(heads.flatten(1), heads, weights)
