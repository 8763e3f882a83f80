"""Convolutions over the tokens (Kim 2014)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.encoder.base import Encoder, require_positive
from genpool.tensors.packing import Packing


class CNNEncoder(Encoder):
    """ReLU(conv + b) of several widths, side by side; one state per token, zeros beyond the ends.

    Args:
        maps: feature maps of each width.
        widths: how many neighbouring tokens each filter sees. A filter of even width sees one more
            token to the right than to the left.
    """

    def __init__(self, input_dim: int, maps: int = 100, widths: Sequence[int] = (3, 4, 5)) -> None:
        require_positive(input_dim=input_dim, maps=maps)
        require_positive(number_of_widths=len(widths), widths=min(widths, default=1))
        super().__init__(input_dim, output_dim=maps * len(widths))
        self.widths = tuple(widths)
        self.filters = nn.ModuleList(nn.Conv1d(input_dim, maps, width) for width in widths)

    def encode_rows(
        self, rows: Tensor, packing: Packing, gates: bool
    ) -> tuple[Tensor, Tensor | None]:
        if not packing.sizes:
            return rows.new_zeros(0, self.output_dim), None
        tokens = packing.align(rows).mT  # (batch, input_dim, longest)
        found = []
        for width, convolution in zip(self.widths, self.filters, strict=True):
            padded = functional.pad(tokens, ((width - 1) // 2, width // 2))
            found.append(convolution(padded).relu())  # (batch, maps, longest)
        states = torch.cat(found, dim=1).mT.flatten(0, 1)  # (batch * longest, output_dim)
        return states.index_select(0, packing.aligned_index()), None
