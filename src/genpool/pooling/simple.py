"""Poolings without parameters: max, mean, last, mean with max, and gated."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from genpool.errors import InputError
from genpool.pooling.base import Pooled, Pooling
from genpool.pooling.masking import (
    hide_padding,
    masked_max,
    masked_mean,
    weighted_sum,
)
from genpool.tensors.checks import require_tensor


class ReductionPooling(Pooling):
    """Base class of poolings without weights; a subclass writes `reduce`."""

    #: number of heads
    parts: ClassVar[int] = 1

    def __init__(self, input_dim: int) -> None:
        super().__init__(input_dim, self.parts)

    def reduce(self, states: Tensor, mask: Tensor) -> Tensor:
        """Returns the heads (batch, parts, input_dim); states and mask are checked."""
        raise NotImplementedError

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        """Pools a batch of sentences.

        Args:
            states: token states (batch, time, input_dim).
            mask: (batch, time), True or 1 at real tokens, False or 0 at padding.

        Returns:
            Vectors (batch, output_dim), heads (batch, heads, input_dim), no weights.

        Raises:
            InputError: a shape or a type does not fit.
        """
        mask = self.check(states, mask)
        heads = self.reduce(states, mask)  # (batch, heads, input_dim)
        return Pooled(heads.flatten(1), heads, None)


class MaxPooling(ReductionPooling):
    """Max pooling: v = max_t h_t, the maximum of each dimension over the real tokens.

    Args:
        input_dim: dimensions of a token state.

    Raises:
        InputError: input_dim is not a whole number of 1 or more.

    Example:
        >>> pooled = MaxPooling(600)(states, mask)   # states (batch, time, 600)
        >>> pooled.vector.shape     # (batch, 600)
    """

    def reduce(self, states: Tensor, mask: Tensor) -> Tensor:
        return masked_max(states, mask).unsqueeze(1)


class MeanPooling(ReductionPooling):
    """Mean pooling: v = sum_t h_t / n, the mean of each dimension over the n real tokens.

    Args:
        input_dim: dimensions of a token state.

    Raises:
        InputError: input_dim is not a whole number of 1 or more.

    Example:
        >>> pooled = MeanPooling(600)(states, mask)   # states (batch, time, 600)
        >>> pooled.vector.shape     # (batch, 600)
    """

    def reduce(self, states: Tensor, mask: Tensor) -> Tensor:
        return masked_mean(states, mask).unsqueeze(1)


class MeanMaxPooling(ReductionPooling):
    """Mean and max pooling concatenated, v = [mean ; max], as in CAFE (Tay et al. 2018).

    The two parts are its two heads.

    Args:
        input_dim: dimensions of a token state.

    Raises:
        InputError: input_dim is not a whole number of 1 or more.

    Example:
        >>> pooled = MeanMaxPooling(600)(states, mask)   # states (batch, time, 600)
        >>> pooled.vector.shape     # (batch, 2 * 600)
    """

    parts = 2

    def reduce(self, states: Tensor, mask: Tensor) -> Tensor:
        return torch.stack([masked_mean(states, mask), masked_max(states, mask)], dim=1)


class LastPooling(ReductionPooling):
    """Last pooling: the final state of a recurrent encoder.

    v = [forward half of h_n ; backward half of h_1], or h_n of a one-way encoder. First and last
    are those of the real tokens, whichever side the padding is on.

    Args:
        input_dim: dimensions of a token state.
        bidirectional: True for states [forward ; backward]: the forward half of the last token and
            the backward half of the first. False for one-way encoders: the last token's state.
            Default: True.

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

    def reduce(self, states: Tensor, mask: Tensor) -> Tensor:
        batch, time, dim = states.shape
        if time == 0:
            return states.new_zeros(batch, 1, dim)
        position = torch.arange(time, device=states.device)  # (time,)
        last = torch.where(mask, position, -1).amax(dim=1).clamp(min=0)  # (batch,)
        rows = torch.arange(batch, device=states.device)  # (batch,)
        clean = hide_padding(states, mask)  # (batch, time, dim): zeros where there is no token
        if not self.bidirectional:
            return clean[rows, last].unsqueeze(1)  # (batch, 1, dim)
        first = torch.where(mask, position, time - 1).amin(dim=1)  # (batch,)
        half = dim // 2
        halves = [clean[rows, last, :half], clean[rows, first, half:]]  # 2 x (batch, dim / 2)
        return torch.cat(halves, dim=1).unsqueeze(1)  # (batch, 1, dim)


class GatedPooling(Pooling):
    """Gated pooling (Chen et al. 2017): v = [mean ; max ; sum_t g_t h_t / sum_t g_t].

    g_t is the norm of the gates of token t. The three parts are its three heads. The gates are an
    argument of `forward`, so that the states may come from any model: for an LSTM they are the top
    layer's input gates, both directions concatenated (encoders with `has_gates` return them with
    the states), but any non-negative saliency (batch, time, width) works.

    Args:
        input_dim: dimensions of a token state.

    Raises:
        InputError: input_dim is not a whole number of 1 or more.

    Example:
        >>> encoded = BiLSTMEncoder(300, hidden_dim=512)(vectors, mask, gates=True)
        >>> pooled = GatedPooling(1024)(encoded.states, mask, encoded.gates)
        >>> pooled.vector.shape     # (batch, 3 * 1024)
    """

    needs_gates = True

    def __init__(self, input_dim: int) -> None:
        super().__init__(input_dim, heads=3)

    def forward(self, states: Tensor, mask: Tensor, gates: Tensor | None = None) -> Pooled:
        """Pools a batch of sentences.

        Args:
            states: token states (batch, time, input_dim).
            mask: (batch, time), True or 1 at real tokens, False or 0 at padding.
            gates: input gates (batch, time, width); required.

        Returns:
            Vectors (batch, 3 * input_dim), heads (batch, 3, input_dim), no weights.

        Raises:
            InputError: the gates are missing, or a shape or a type does not fit.
        """
        mask = self.check(states, mask)
        weights = self._weights(gates, mask)  # (batch, 1, time, 1)
        gated = weighted_sum(weights, hide_padding(states, mask))  # (batch, 1, input_dim)
        plain = [masked_mean(states, mask), masked_max(states, mask)]  # 2 x (batch, input_dim)
        heads = torch.cat([torch.stack(plain, dim=1), gated], dim=1)  # (batch, 3, input_dim)
        return Pooled(heads.flatten(1), heads, None)

    def _weights(self, gates: Tensor | None, mask: Tensor) -> Tensor:
        """Returns g_t / sum_t g_t as weights (batch, 1, time, 1)."""
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
        clean = hide_padding(gates, mask)  # (batch, time, width)
        norms: Tensor = torch.linalg.vector_norm(clean, dim=-1)  # (batch, time): g
        total = norms.sum(dim=1, keepdim=True)  # (batch, 1)
        # Gates that are all zero prefer no token: weights of zero rather than 0 / 0.
        return (norms / total.masked_fill(total == 0, 1))[:, None, :, None]
