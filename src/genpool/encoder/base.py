"""What every encoder shares: the result, the checks of its input, and the base class."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from genpool.errors import InputError
from genpool.tensors.packing import Packing


class Encoded(NamedTuple):
    """What an encoder gives.

    states  (batch, time, output_dim)   one state per token, zeros at padding
    gates   (batch, time, width)        input gates of the top layer, where asked for; else None
    """

    states: Tensor
    gates: Tensor | None = None


class Encoder(nn.Module):
    """Token vectors and a mask in, one state per token out.

    A subclass writes `encode_rows`, which sees packed rows only: no padding ever reaches a layer,
    so that a sentence's states cannot depend on its batch.
    """

    #: whether states are [forward ; backward] (what last pooling must know)
    bidirectional: bool = False
    #: whether `gates=True` is possible (what gated pooling needs)
    has_gates: bool = False

    def __init__(self, input_dim: int, output_dim: int) -> None:
        super().__init__()
        require_positive(input_dim=input_dim)
        self.input_dim = input_dim
        self.output_dim = output_dim

    def forward(self, inputs: Tensor, mask: Tensor, gates: bool = False) -> Encoded:
        if inputs.dim() != 3 or inputs.shape[-1] != self.input_dim:
            raise InputError(
                f"inputs have shape {tuple(inputs.shape)}; expected (batch, time, "
                f"{self.input_dim}): this encoder was made with input_dim={self.input_dim}."
            )
        if not isinstance(mask, Tensor):
            raise InputError(
                f"mask is {type(mask).__name__}; expected a boolean tensor (batch, time)."
            )
        if mask.shape != inputs.shape[:2] or mask.dtype is not torch.bool:
            raise InputError(
                f"mask has shape {tuple(mask.shape)} and type {mask.dtype}; expected a boolean "
                f"mask {tuple(inputs.shape[:2])}, True at real tokens."
            )
        if gates and not self.has_gates:
            raise InputError(
                f"{type(self).__name__} has no input gates; gated pooling needs an LSTM encoder."
            )
        packing = Packing.from_mask(mask)
        states, gate_rows = self.encode_rows(packing.pack(inputs), packing, gates)
        return Encoded(
            packing.unpack(states), None if gate_rows is None else packing.unpack(gate_rows)
        )

    def encode_rows(
        self, rows: Tensor, packing: Packing, gates: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Packed vectors (rows, input_dim) -> states (rows, output_dim), gates or None."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        return f"input_dim={self.input_dim}, output_dim={self.output_dim}"


def require_positive(**sizes: int) -> None:
    """Raises InputError for the sizes, given by name, that are not 1 or more."""
    for name, size in sizes.items():
        if size < 1:
            raise InputError(f"{name} is {size}; expected 1 or more.")
