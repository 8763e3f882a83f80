"""Bag of words: the token vectors are the states."""

from __future__ import annotations

from torch import Tensor

from genpool.encoder.base import Encoder
from genpool.tensors.packing import Packing


class BagOfWordsEncoder(Encoder):
    """No parameters. With mean pooling this is CBOW."""

    def __init__(self, input_dim: int) -> None:
        super().__init__(input_dim, output_dim=input_dim)

    def encode_rows(
        self, rows: Tensor, packing: Packing, gates: bool
    ) -> tuple[Tensor, Tensor | None]:
        return rows, None
