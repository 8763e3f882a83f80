"""What every pooling shares: the result, the checks of its input, and the base class."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from genpool.errors import InputError
from genpool.tensors.packing import Packing


class Pooled(NamedTuple):
    """What a pooling gives.

    vector   (batch, output_dim)               the heads, concatenated v1;v2;...
    heads    (batch, heads, input_dim)         the same numbers, one vector per head
    weights  (batch, heads, time, input_dim)   what each token gave to each dimension; (..., 1) for
                                               scalar attention; None where a pooling has no weights
    """

    vector: Tensor
    heads: Tensor
    weights: Tensor | None


class Pooling(nn.Module):
    """States of the tokens and a mask in, one vector per sentence out.

    `pooling(states, mask)` takes states (batch, time, input_dim) of any model and a boolean mask
    (batch, time), True at real tokens. What stands at the other positions, and how many of them
    there are, never changes the result. A sentence with no token gives zeros.
    """

    #: whether `forward` also needs the gates of an LSTM (see `GatedPooling`)
    needs_gates: bool = False

    def __init__(self, input_dim: int, heads: int = 1) -> None:
        """heads: how many vectors of input_dim are concatenated."""
        super().__init__()
        require_positive("input_dim", input_dim)
        require_positive("heads", heads)
        self.input_dim = input_dim
        self.output_dim = heads * input_dim

    def pool_rows(self, rows: Tensor, packing: Packing, gates: Tensor | None = None) -> Pooled:
        """The same for packed rows (rows, input_dim), where the weights are not wanted.

        A pooling that can do without the padded tensor writes its own.
        """
        more = {} if gates is None else {"gates": packing.unpack(gates)}
        pooled: Pooled = self(packing.unpack(rows), packing.mask(), **more)
        return pooled

    def check(self, states: Tensor, mask: Tensor) -> None:
        check_states(states, mask, self.input_dim)
        own = next(self.parameters(), None)
        mixed = own is not None and own.dtype is not states.dtype
        if mixed and not torch.is_autocast_enabled(states.device.type):
            raise InputError(
                f"states have type {states.dtype}, this pooling another; expected the same: "
                "pooling.to(states.dtype), or states.to(...)."
            )

    def extra_repr(self) -> str:
        return f"input_dim={self.input_dim}, output_dim={self.output_dim}"


def require_positive(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{name} is {value!r}; expected a whole number of 1 or more.")


def require_tensor(name: str, value: object, expected: str) -> None:
    if not isinstance(value, Tensor):
        raise InputError(f"{name} is {type(value).__name__}; expected {expected}.")


def check_states(states: Tensor, mask: Tensor, input_dim: int) -> None:
    """Raises InputError where states and mask cannot be pooled."""
    require_tensor("states", states, "a tensor (batch, time, input_dim)")
    if states.dim() != 3:
        raise InputError(
            f"states have shape {tuple(states.shape)}; expected three dimensions "
            "(batch, time, input_dim). For one sentence, add the batch: states.unsqueeze(0)."
        )
    if states.shape[-1] != input_dim:
        raise InputError(
            f"states have width {states.shape[-1]} (shape {tuple(states.shape)}); this pooling was "
            f"made with input_dim={input_dim}."
        )
    if not states.is_floating_point():
        raise InputError(f"states have type {states.dtype}; expected floating-point numbers.")
    require_tensor("mask", mask, "a boolean tensor (batch, time)")
    if mask.dtype is not torch.bool:
        raise InputError(
            f"mask has type {mask.dtype}; expected torch.bool, True at real tokens. "
            "Use mask.bool(), or `mask == 0` if yours is 1 at padding."
        )
    if mask.shape != states.shape[:2]:
        raise InputError(
            f"mask has shape {tuple(mask.shape)}; expected {tuple(states.shape[:2])}, the batch "
            f"and time of states {tuple(states.shape)}."
        )
