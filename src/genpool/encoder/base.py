"""What every encoder shares: the result, the checks of its input, and the base class."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from genpool.errors import InputError
from genpool.tensors.packing import Packing


class Encoded(NamedTuple):
    """The result of an encoder.

    Attributes:
        states: one state per token, (batch, time, output_dim), zeros at padding.
        gates: input gates of the top LSTM layer, (batch, time, width), where they were requested;
            otherwise None.

    Example:
        >>> states, gates = LSTMEncoder(300)(vectors, mask, gates=True)
    """

    states: Tensor
    gates: Tensor | None = None


class Encoder(nn.Module):
    """Base class: token vectors and a mask in, one state per token out.

    Call an encoder as `encoder(inputs, mask)`. A sentence has the same states in any batch, with
    any padding on either side.

    To add an encoder, subclass this class, write `encode_rows`, and add a line to `ENCODERS`.
    `encode_rows` sees packed rows only: no padding ever reaches a layer, so that the states of a
    sentence cannot depend on its batch.

    Args:
        input_dim: dimensions of a token vector.
        output_dim: dimensions of a state.

    Attributes:
        input_dim: dimensions of a token vector.
        output_dim: dimensions of a state.

    Raises:
        InputError: input_dim is less than 1.

    Example:
        >>> class LinearEncoder(Encoder):
        ...     def __init__(self, input_dim, output_dim=300):
        ...         super().__init__(input_dim, output_dim)
        ...         self.linear = nn.Linear(input_dim, output_dim)
        ...     def encode_rows(self, rows, packing, gates):
        ...         return self.linear(rows), None
    """

    #: whether states are [forward ; backward], which last pooling depends on
    bidirectional: ClassVar[bool] = False
    #: whether `gates=True` is possible, which gated pooling needs
    has_gates: ClassVar[bool] = False

    def __init__(self, input_dim: int, output_dim: int) -> None:
        super().__init__()
        require_positive(input_dim=input_dim)
        self.input_dim = input_dim
        self.output_dim = output_dim

    def forward(self, inputs: Tensor, mask: Tensor, gates: bool = False) -> Encoded:
        """Encodes a batch of sentences.

        Args:
            inputs: token vectors (batch, time, input_dim).
            mask: boolean (batch, time), True at real tokens.
            gates: also return the input gates of the top layer, for gated pooling; only for
                encoders with `has_gates`. Default: False.

        Returns:
            States (batch, time, output_dim), zeros at padding, and the gates or None.

        Raises:
            InputError: a shape or a type does not fit, or gates of an encoder that has none.
        """
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
        """Encodes packed rows.

        Args:
            rows: vectors of the real tokens, (rows, input_dim).
            packing: where the rows belong.
            gates: whether the input gates are needed too.

        Returns:
            States (rows, output_dim), and input gates (rows, width) or None.
        """
        raise NotImplementedError

    def extra_repr(self) -> str:
        return f"input_dim={self.input_dim}, output_dim={self.output_dim}"


def require_positive(**sizes: int) -> None:
    """Raises InputError for sizes, passed by name, that are less than 1."""
    for name, size in sizes.items():
        if size < 1:
            raise InputError(f"{name} is {size}; expected 1 or more.")
