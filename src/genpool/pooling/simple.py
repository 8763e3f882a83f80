"""Max, mean and last pooling: no parameters, no weights."""

from __future__ import annotations

import torch
from torch import Tensor

from genpool.errors import InputError
from genpool.pooling.base import Pooled, Pooling
from genpool.pooling.masking import hide_padding, masked_max, masked_mean


def last_states(states: Tensor, mask: Tensor, bidirectional: bool) -> Tensor:
    """[last forward state ; first backward state], or the last state of a one-way encoder.

    Last and first are those of the real tokens, on whichever side the padding stands.
    """
    batch, time, dim = states.shape
    if time == 0:
        return states.new_zeros(batch, dim)
    position = torch.arange(time, device=states.device)  # (time,)
    last = torch.where(mask, position, -1).amax(dim=1).clamp(min=0)  # (batch,)
    rows = torch.arange(batch, device=states.device)  # (batch,)
    clean = hide_padding(states, mask)  # (batch, time, dim): a sentence with no token gives zeros
    if not bidirectional:
        return clean[rows, last]  # (batch, dim)
    first = torch.where(mask, position, time - 1).amin(dim=1)  # (batch,)
    half = dim // 2
    return torch.cat([clean[rows, last, :half], clean[rows, first, half:]], dim=1)  # (batch, dim)


class MaxPooling(Pooling):
    """The largest number of each dimension over the real tokens."""

    def __init__(self, input_dim: int) -> None:
        super().__init__(input_dim)

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        self.check(states, mask)
        vector = masked_max(states, mask)  # (batch, input_dim)
        return Pooled(vector, vector.unsqueeze(1), None)


class MeanPooling(Pooling):
    """The mean of each dimension over the real tokens."""

    def __init__(self, input_dim: int) -> None:
        super().__init__(input_dim)

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        self.check(states, mask)
        vector = masked_mean(states, mask)  # (batch, input_dim)
        return Pooled(vector, vector.unsqueeze(1), None)


class LastPooling(Pooling):
    """The last state of a recurrent encoder.

    Args:
        bidirectional: True for states [forward ; backward]: the forward half of the last token and
            the backward half of the first. False for one-way encoders: the last token's state.
    """

    def __init__(self, input_dim: int, bidirectional: bool = True) -> None:
        super().__init__(input_dim)
        if bidirectional and input_dim % 2:
            raise InputError(
                f"input_dim is {input_dim}; last pooling of [forward ; backward] states needs an "
                "even width. For a one-way encoder use bidirectional=False."
            )
        self.bidirectional = bidirectional

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        self.check(states, mask)
        vector = last_states(states, mask, self.bidirectional)  # (batch, input_dim)
        return Pooled(vector, vector.unsqueeze(1), None)
