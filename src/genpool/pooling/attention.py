"""The attention poolings that generalized pooling is compared with."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.pooling.base import AttentionPooling, Pooled, require_std
from genpool.pooling.masking import masked_mean, masked_softmax
from genpool.pooling.packed import attention_pool
from genpool.tensors.checks import require_positive
from genpool.tensors.packing import Packing


class ScalarAttentionPooling(AttentionPooling):
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
        require_positive(hidden_dim=self.hidden_dim)
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

    def weights(self, states: Tensor, mask: Tensor) -> Tensor:
        """Returns A (batch, heads, time, 1)."""
        inner = torch.tanh(states @ self.w1.T)  # (batch, time, hidden)
        logits = (inner @ self.w2.T).mT.unsqueeze(-1)  # (batch, heads, time, 1)
        return masked_softmax(logits, mask)


class InnerAttentionPooling(AttentionPooling):
    """Inner attention (Liu et al. 2016): tokens are weighted by comparison with the mean, one head.

    alpha = softmax_t(w . tanh(Wy h_t + Wh mean(h))); v = sum_t alpha_t h_t.

    Args:
        input_dim: dimensions of a token state.

    Raises:
        InputError: input_dim is not a whole number of 1 or more.

    Example:
        >>> pooled = InnerAttentionPooling(600)(states, mask)   # states (batch, time, 600)
        >>> pooled.vector.shape     # (batch, 600)
    """

    keeps_weight_ratios = False  # the mean changes with every token

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

    def weights(self, states: Tensor, mask: Tensor) -> Tensor:
        """Returns alpha (batch, 1, time, 1)."""
        mean = masked_mean(states, mask)  # (batch, dim)
        compared = torch.tanh(states @ self.wy.T + (mean @ self.wh.T).unsqueeze(1))
        logits = (compared @ self.w)[:, None, :, None]  # (batch, 1, time, 1)
        return masked_softmax(logits, mask)


class SourceToTokenPooling(AttentionPooling):
    """DiSAN's pooling (Shen et al. 2017): a weight for every dimension of every token, one head.

    P = softmax_t(W2 elu(W1 h_t + b1) + b2) per dimension; v = sum_t P_t * h_t.

    Args:
        input_dim: dimensions of a token state.

    Raises:
        InputError: input_dim is not a whole number of 1 or more.

    Example:
        >>> pooled = SourceToTokenPooling(600)(states, mask)   # states (batch, time, 600)
        >>> pooled.weights.shape    # (batch, 1, time, 600)
    """

    is_packed = True
    penalties = ("attention",)

    def __init__(self, input_dim: int) -> None:
        super().__init__(input_dim)
        self.first = nn.Linear(input_dim, input_dim)
        self.second = nn.Linear(input_dim, input_dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Re-initializes: matrices Xavier uniform, biases 0."""
        for layer in (self.first, self.second):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def weights(self, states: Tensor, mask: Tensor) -> Tensor:
        """Returns P (batch, 1, time, input_dim)."""
        logits = self.second(functional.elu(self.first(states)))  # (batch, time, input_dim)
        return masked_softmax(logits.unsqueeze(1), mask)

    def pool_rows(self, rows: Tensor, packing: Packing, gates: Tensor | None = None) -> Pooled:
        inner = functional.elu(self.first(rows))  # (rows, input_dim)
        heads = attention_pool(
            inner, self.second.weight.unsqueeze(0), self.second.bias.unsqueeze(0), rows, packing
        )
        return Pooled(heads.flatten(1), heads, None)
