"""The poolings that generalized pooling is compared with, by attention and without parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.errors import InputError
from genpool.pooling.base import (
    AttentionPooling,
    Pooled,
    Pooling,
    hide_padding,
    masked_max,
    masked_mean,
    masked_softmax,
    require_std,
    weighted_sum,
)
from genpool.pooling.generalized import attention_pool
from genpool.tensors.modules import require_positive, require_tensor
from genpool.tensors.packing import Packing


class ScalarAttentionPooling(AttentionPooling):
    """Structured self-attention (Lin et al. 2017): A = softmax(W2 tanh(W1 H^T)), v = A H flattened.

    Args:
        input_dim: dimensions of a token state.
        heads: number of weights per token (their r).
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
        """Re-initializes the parameters, as `initial_std` says."""
        for weight in (self.w1, self.w2):
            if self.initial_std is None:
                nn.init.xavier_uniform_(weight)
            else:
                nn.init.normal_(weight, std=self.initial_std)

    def weights(self, states: Tensor, mask: Tensor) -> Tensor:
        inner = torch.tanh(states @ self.w1.T)  # (batch, time, hidden)
        logits = (inner @ self.w2.T).mT.unsqueeze(-1)  # (batch, heads, time, 1)
        return masked_softmax(logits, mask)


class InnerAttentionPooling(AttentionPooling):
    """Inner attention (Liu et al. 2016): tokens are weighted by comparison with the mean, one head.

    alpha = softmax_t(w . tanh(Wy h_t + Wh mean(h))); v = sum_t alpha_t h_t.

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
        """Re-initializes the parameters."""
        nn.init.xavier_uniform_(self.wy)
        nn.init.xavier_uniform_(self.wh)
        nn.init.normal_(self.w, std=self.input_dim**-0.5)

    def weights(self, states: Tensor, mask: Tensor) -> Tensor:
        mean = masked_mean(states, mask)  # (batch, dim)
        compared = torch.tanh(states @ self.wy.T + (mean @ self.wh.T).unsqueeze(1))
        logits = (compared @ self.w)[:, None, :, None]  # (batch, 1, time, 1)
        return masked_softmax(logits, mask)


class SourceToTokenPooling(AttentionPooling):
    """DiSAN's pooling (Shen et al. 2017): a weight for every dimension of every token, one head.

    P = softmax_t(W2 elu(W1 h_t + b1) + b2) per dimension; v = sum_t P_t * h_t.

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
        """Re-initializes the parameters."""
        for layer in (self.first, self.second):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def weights(self, states: Tensor, mask: Tensor) -> Tensor:
        logits = self.second(functional.elu(self.first(states)))  # (batch, time, input_dim)
        return masked_softmax(logits.unsqueeze(1), mask)

    def pool_rows(self, rows: Tensor, packing: Packing, gates: Tensor | None = None) -> Pooled:
        inner = functional.elu(self.first(rows))  # (rows, input_dim)
        w2, b2 = self.second.weight.unsqueeze(0), self.second.bias.unsqueeze(0)
        heads = attention_pool(inner, w2, b2, rows, packing)  # (batch, 1, input_dim)
        return Pooled(heads.squeeze(1), heads, None)


class ReductionPooling(Pooling):
    """Base class of poolings without weights: one head per reduction, concatenated."""

    #: functions (states (batch, time, dim), mask (batch, time)) -> (batch, dim)
    reductions: ClassVar[tuple[Callable[[Tensor, Tensor], Tensor], ...]]

    def __init__(self, input_dim: int) -> None:
        super().__init__(input_dim, len(self.reductions))

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        """Pools a batch of sentences: states (batch, time, input_dim), mask (batch, time)."""
        mask = self.check(states, mask)
        heads = torch.stack([reduce(states, mask) for reduce in self.reductions], dim=1)
        return Pooled(heads.flatten(1), heads, None)


class MaxPooling(ReductionPooling):
    """Max pooling: v = max_t h_t, the maximum of each dimension over the real tokens.

    Example:
        >>> pooled = MaxPooling(600)(states, mask)   # states (batch, time, 600)
        >>> pooled.vector.shape     # (batch, 600)
    """

    reductions = (masked_max,)


class MeanPooling(ReductionPooling):
    """Mean pooling: v = sum_t h_t / n, the mean of each dimension over the n real tokens.

    Example:
        >>> pooled = MeanPooling(600)(states, mask)   # states (batch, time, 600)
        >>> pooled.vector.shape     # (batch, 600)
    """

    reductions = (masked_mean,)


class MeanMaxPooling(ReductionPooling):
    """Mean and max pooling concatenated, v = [mean ; max], as in CAFE (Tay et al. 2018).

    The two parts are its two heads.

    Example:
        >>> pooled = MeanMaxPooling(600)(states, mask)   # states (batch, time, 600)
        >>> pooled.vector.shape     # (batch, 2 * 600)
    """

    reductions = (masked_mean, masked_max)


class LastPooling(Pooling):
    """Last pooling: the final state of a recurrent encoder.

    v = [forward half of h_n ; backward half of h_1], or h_n of a one-way encoder. First and last
    are those of the real tokens, whichever side the padding is on.

    Args:
        input_dim: dimensions of a token state.
        bidirectional: True for states [forward ; backward]: the forward half of the last token and
            the backward half of the first. False for one-way encoders: the last token's state.

    Raises:
        InputError: input_dim is not a whole number of 1 or more, or odd with bidirectional=True.

    Example:
        >>> pooled = LastPooling(300, bidirectional=False)(states, mask)   # states of a GRU
        >>> pooled.vector.shape     # (batch, 300)
    """

    needs_direction = True

    def __init__(self, input_dim: int, bidirectional: bool = True) -> None:
        super().__init__(input_dim)
        if bidirectional and input_dim % 2:
            raise InputError(
                f"input_dim is {input_dim}; last pooling of [forward ; backward] states needs an "
                "even width. For a one-way encoder use bidirectional=False."
            )
        self.bidirectional = bidirectional

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        """Pools a batch of sentences: states (batch, time, input_dim), mask (batch, time)."""
        mask = self.check(states, mask)
        if mask.shape[1] == 0:
            vector = states.new_zeros(states.shape[0], self.input_dim)
            return Pooled(vector, vector.unsqueeze(1), None)
        clean = hide_padding(states, mask)  # (batch, time, dim)
        sentence = torch.arange(states.shape[0], device=states.device)  # (batch,)
        position = torch.arange(states.shape[1], device=states.device)  # (time,)
        last = torch.where(mask, position, -1).amax(dim=1).clamp(min=0)  # (batch,)
        vector = clean[sentence, last]  # (batch, dim)
        if self.bidirectional:
            first = torch.where(mask, position, states.shape[1] - 1).amin(dim=1)  # (batch,)
            half = self.input_dim // 2
            vector = torch.cat([vector[:, :half], clean[sentence, first, half:]], dim=1)
        return Pooled(vector, vector.unsqueeze(1), None)


class GatedPooling(Pooling):
    """Gated pooling (Chen et al. 2017): v = [mean ; max ; sum_t g_t h_t / sum_t g_t].

    g_t is the norm of the gates of token t. The three parts are its three heads. The gates are an
    argument of `forward`, so that the states may come from any model: for an LSTM they are the top
    layer's input gates, both directions concatenated (encoders with `has_gates` return them with
    the states), but any non-negative saliency (batch, time, width) works.

    Example:
        >>> encoded = BiLSTMEncoder(300, hidden_dim=512)(vectors, mask, gates=True)
        >>> pooled = GatedPooling(1024)(encoded.states, mask, encoded.gates)
        >>> pooled.vector.shape     # (batch, 3 * 1024)
    """

    needs_gates = True

    def __init__(self, input_dim: int) -> None:
        super().__init__(input_dim, heads=3)

    def forward(self, states: Tensor, mask: Tensor, gates: Tensor | None = None) -> Pooled:
        """Pools a batch of sentences: states (batch, time, input_dim), mask (batch, time).

        The gates (batch, time, width) are required; an InputError says so where they are missing.
        """
        mask = self.check(states, mask)
        if gates is None:
            raise InputError(
                "gated pooling was called without gates; expected pooling(states, mask, gates), "
                "gates (batch, time, width): the input gates of the LSTM that made the states."
            )
        require_tensor("gates", gates, "a tensor (batch, time, width)")
        if gates.dim() != 3 or gates.shape[:2] != mask.shape:
            raise InputError(
                f"gates have shape {tuple(gates.shape)}; expected {(*mask.shape, 'width')}."
            )
        norms: Tensor = torch.linalg.vector_norm(hide_padding(gates, mask), dim=-1)  # (batch, time)
        total = norms.sum(dim=1, keepdim=True)  # (batch, 1)
        # Gates that are all zero prefer no token: weights of zero rather than 0 / 0.
        weights = (norms / total.masked_fill(total == 0, 1))[:, None, :, None]
        gated = weighted_sum(weights, hide_padding(states, mask)).squeeze(1)  # (batch, input_dim)
        parts = [masked_mean(states, mask), masked_max(states, mask), gated]
        heads = torch.stack(parts, dim=1)  # (batch, 3, input_dim)
        return Pooled(heads.flatten(1), heads, None)
