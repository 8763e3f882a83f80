"""Sentences of a graph, moved so that every one begins at 0."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


def left_aligned(mask: Tensor) -> Tensor:
    """(batch, time): the positions of the real tokens in their order, then those of padding."""
    time = mask.shape[1]
    position = torch.arange(time, device=mask.device)  # (time,)
    return torch.where(mask, position, position + time).argsort(dim=1)


@dataclass(frozen=True)
class Aligned:
    """Padding stands behind every sentence.

    mask     (batch, time)   True at real tokens
    lengths  (batch,)        tokens that a recurrent layer reads, as ONNX counts them: 32 bits
    """

    mask: Tensor
    lengths: Tensor

    @classmethod
    def of(cls, mask: Tensor) -> Aligned:
        """From a mask whose padding may stand anywhere."""
        lengths = mask.sum(dim=1, keepdim=True)  # (batch, 1)
        real = torch.arange(mask.shape[1], device=mask.device) < lengths  # (batch, time)
        # Not every program runs a layer on no token; one of padding is hidden by the pooling.
        return cls(real, lengths.squeeze(1).clamp(min=1).to(torch.int32))
