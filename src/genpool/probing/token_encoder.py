"""What a probe needs of a frozen encoder: the states of the tokens of a text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from genpool.text import Token

#: what is stored: half precision is exact enough for states, and takes half the space
StateArray = NDArray[np.float16]
#: the largest value of half precision; larger states are cut there
MAX_STATE = float(np.finfo(np.float16).max)


class TokenEncoder(ABC):
    """Texts in, token states out; the model itself is never trained.

    Attributes:
        reference: how the encoder is named on the command line and in a saved probe: "embedded",
            a folder, or "transformer:FOLDER"; None if it exists in memory only.
        dim: dimensions of a state.
        layers: number of layers whose states are returned.
        bidirectional: whether states are [forward ; backward], which last pooling depends on.
    """

    reference: str | None
    dim: int
    layers: int
    bidirectional: bool = False

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """The SHA-256 of all that the states depend on."""

    @abstractmethod
    def states(self, texts: Sequence[str]) -> list[StateArray]:
        """Returns the states (tokens, layers, dim) of every text, in half precision.

        Args:
            texts: texts of similar lengths, which are encoded as one batch.
        """

    @abstractmethod
    def tokens(self, text: str) -> list[Token]:
        """Returns the tokens of a text, one for each of its states; special ones have no place."""


def as_stored(states: NDArray[np.float32]) -> StateArray:
    """Returns states in half precision; values beyond its range are cut to its limits."""
    return np.clip(states, -MAX_STATE, MAX_STATE).astype(np.float16)
