"""Moving the padding of a traced batch behind every sentence."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


def left_aligned(mask: Tensor) -> Tensor:
    """Returns (batch, time): the positions of the real tokens in order, then those of padding."""
    time = mask.shape[1]
    position = torch.arange(time, device=mask.device)  # (time,)
    return torch.where(mask, position, position + time).argsort(dim=1)


@dataclass(frozen=True)
class Aligned:
    """Where the real tokens are once every sentence starts at 0.

    Attributes:
        mask: (batch, time), True at real tokens.
        lengths: (batch,), tokens that a recurrent operator reads, as the int32 of ONNX.
    """

    mask: Tensor
    lengths: Tensor

    @classmethod
    def from_mask(cls, mask: Tensor) -> Aligned:
        """Returns the alignment of a mask (batch, time) with padding anywhere."""
        lengths = mask.sum(dim=1, keepdim=True)  # (batch, 1)
        aligned = torch.arange(mask.shape[1], device=mask.device) < lengths  # (batch, time)
        # Not every runtime accepts a length of 0; one token of padding is hidden by the pooling.
        return cls(aligned, lengths.squeeze(1).clamp(min=1).to(torch.int32))
