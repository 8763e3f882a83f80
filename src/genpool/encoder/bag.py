"""Bag of words: the token vectors are the states."""

from __future__ import annotations

from torch import Tensor

from genpool.encoder.base import Encoder
from genpool.tensors.packing import Packing


class BagOfWordsEncoder(Encoder):
    """Bag of words: the token vectors are the states. With mean pooling this is CBOW.

    It has no parameters.

    Args:
        input_dim: dimensions of a token vector, and of a state.

    Raises:
        InputError: input_dim is less than 1.

    Example:
        >>> states, _ = BagOfWordsEncoder(300)(vectors, mask)   # (batch, time, 300), both
    """

    def __init__(self, input_dim: int) -> None:
        super().__init__(input_dim, output_dim=input_dim)

    def encode_rows(
        self, rows: Tensor, packing: Packing, gates: bool
    ) -> tuple[Tensor, Tensor | None]:
        return rows, None

    def padded_states(self, tokens: Tensor, mask: Tensor, lstm: object) -> Tensor:
        return tokens
