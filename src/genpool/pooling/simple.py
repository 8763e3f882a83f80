"""Max, mean and last pooling: no parameters, no weights."""

from __future__ import annotations

import torch
from torch import Tensor

from genpool.errors import InputError
from genpool.pooling.base import Pooled, Pooling
from genpool.pooling.leave_one_out import max_without, mean_without
from genpool.pooling.masking import hide_padding, masked_max, masked_mean


def last_states(states: Tensor, mask: Tensor, bidirectional: bool) -> Tensor:
    """Returns [last forward state ; first backward state], or the last state of a one-way encoder.

    Last and first are those of the real tokens, whichever side the padding is on: (batch, dim).
    """
    batch, time, dim = states.shape
    if time == 0:
        return states.new_zeros(batch, dim)
    position = torch.arange(time, device=states.device)  # (time,)
    last = torch.where(mask, position, -1).amax(dim=1).clamp(min=0)  # (batch,)
    rows = torch.arange(batch, device=states.device)  # (batch,)
    clean = hide_padding(states, mask)  # (batch, time, dim): zeros for a sentence without tokens
    if not bidirectional:
        return clean[rows, last]  # (batch, dim)
    first = torch.where(mask, position, time - 1).amin(dim=1)  # (batch,)
    half = dim // 2
    return torch.cat([clean[rows, last, :half], clean[rows, first, half:]], dim=1)  # (batch, dim)


class MaxPooling(Pooling):
    """Max pooling: the maximum of each dimension over the real tokens.

    Args:
        input_dim: dimensions of a token state.

    Raises:
        InputError: input_dim is not a whole number of 1 or more.

    Example:
        >>> pooled = MaxPooling(600)(states, mask)   # states (batch, time, 600)
        >>> pooled.vector.shape     # (batch, 600)
    """

    def __init__(self, input_dim: int) -> None:
        super().__init__(input_dim)

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        """Pools a batch of sentences.

        Args:
            states: token states (batch, time, input_dim).
            mask: (batch, time), True or 1 at real tokens, False or 0 at padding.

        Returns:
            Vectors (batch, input_dim), heads (batch, 1, input_dim), no weights.

        Raises:
            InputError: a shape or a type does not fit.
        """
        mask = self.check(states, mask)
        return _one_head(masked_max(states, mask))

    def heads_without(self, states: Tensor, mask: Tensor, gates: Tensor | None = None) -> Tensor:
        """Pools with one token left out, for every token in turn: (batch, 1, time, input_dim).

        The arguments, and the zeros, are those of `Pooling.heads_without`.
        """
        mask = self.check(states, mask)
        return max_without(states, mask).unsqueeze(1)


class MeanPooling(Pooling):
    """Mean pooling: the mean of each dimension over the real tokens.

    Args:
        input_dim: dimensions of a token state.

    Raises:
        InputError: input_dim is not a whole number of 1 or more.

    Example:
        >>> pooled = MeanPooling(600)(states, mask)   # states (batch, time, 600)
        >>> pooled.vector.shape     # (batch, 600)
    """

    def __init__(self, input_dim: int) -> None:
        super().__init__(input_dim)

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        """Pools a batch of sentences.

        Args:
            states: token states (batch, time, input_dim).
            mask: (batch, time), True or 1 at real tokens, False or 0 at padding.

        Returns:
            Vectors (batch, input_dim), heads (batch, 1, input_dim), no weights.

        Raises:
            InputError: a shape or a type does not fit.
        """
        mask = self.check(states, mask)
        return _one_head(masked_mean(states, mask))

    def heads_without(self, states: Tensor, mask: Tensor, gates: Tensor | None = None) -> Tensor:
        """Pools with one token left out, for every token in turn: (batch, 1, time, input_dim).

        The arguments, and the zeros, are those of `Pooling.heads_without`.
        """
        mask = self.check(states, mask)
        return mean_without(states, mask).unsqueeze(1)


class LastPooling(Pooling):
    """Last pooling: the final state of a recurrent encoder.

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

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        """Pools a batch of sentences.

        Args:
            states: token states (batch, time, input_dim).
            mask: (batch, time), True or 1 at real tokens, False or 0 at padding.

        Returns:
            Vectors (batch, input_dim), heads (batch, 1, input_dim), no weights.

        Raises:
            InputError: a shape or a type does not fit.
        """
        mask = self.check(states, mask)
        return _one_head(last_states(states, mask, self.bidirectional))


def _one_head(vector: Tensor) -> Pooled:
    """The result of a pooling without weights whose vector (batch, dim) is its only head."""
    return Pooled(vector, vector.unsqueeze(1), None)
