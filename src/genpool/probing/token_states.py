"""The token states of many texts, end to end in one array: in memory, or mapped from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genpool.inference.sentence_vectors import length_groups
from genpool.probing.token_encoder import StateArray, TokenEncoder
from genpool.tensors.packing import Packing

#: texts that are encoded together, fewer where they are long
ENCODING_BATCH = 32
#: characters of a token, to guess the length of a text before it is split
CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True)
class TokenStates:
    """States of texts in the order of the texts.

    Attributes:
        rows: (tokens of all texts, layers, dim) in half precision.
        starts: (texts,), the first row of each text.
        lengths: (texts,), its number of tokens.
    """

    rows: StateArray
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def layers(self) -> int:
        """The number of layers."""
        return int(self.rows.shape[1])

    @property
    def dim(self) -> int:
        """The dimensions of a state."""
        return int(self.rows.shape[2])

    def select(self, texts: NDArray[np.int64]) -> TokenStates:
        """Returns the states of some of the texts; no state is copied."""
        return TokenStates(self.rows, self.starts[texts], self.lengths[texts])

    def batch(
        self,
        texts: NDArray[np.int64],
        token_dropout: float = 0.0,
        random: torch.Generator | None = None,
    ) -> tuple[Tensor, Packing]:
        """Returns the states of a batch of texts as packed rows.

        Args:
            texts: (batch,), the positions of the texts.
            token_dropout: the share of tokens that are left out at random. Default: 0.
            random: draws them. Default: None, PyTorch's own generator.

        Returns:
            Rows (rows, layers, dim) in single precision, and where they belong.
        """
        lengths = torch.from_numpy(self.lengths[texts])  # (batch,)
        longest = int(lengths.max()) if len(lengths) else 0
        mask = torch.arange(longest) < lengths.unsqueeze(1)  # (batch, time)
        if token_dropout:
            kept = mask & (torch.rand(mask.shape, generator=random) >= token_dropout)
            # A text keeps all of its tokens rather than none.
            mask = torch.where(kept.any(dim=1, keepdim=True), kept, mask)
        packing = Packing.from_mask(mask)
        starts = torch.from_numpy(self.starts[texts])  # (batch,)
        position = packing.index % max(longest, 1)  # (rows,)
        index = starts[packing.sentence] + position  # (rows,)
        return torch.from_numpy(self.rows[index.numpy()].astype(np.float32)), packing

    def batches(self, batch_size: int) -> Iterator[NDArray[np.int64]]:
        """Yields the positions of all texts, those of similar lengths together."""
        for group in length_groups(self.lengths.tolist(), batch_size):
            yield np.array(group, dtype=np.int64)


def encode_groups(
    encoder: TokenEncoder, texts: Sequence[str]
) -> Iterator[tuple[list[int], list[StateArray]]]:
    """Yields positions of texts of similar lengths, and their states."""
    guesses = [len(text) // CHARACTERS_PER_TOKEN + 1 for text in texts]
    for group in length_groups(guesses, ENCODING_BATCH):
        yield group, encoder.states([texts[position] for position in group])


def encode_states(
    encoder: TokenEncoder,
    texts: Sequence[str],
    done: Callable[[int], object] = lambda count: None,
) -> TokenStates:
    """Returns the states of texts in memory.

    Args:
        encoder: the frozen encoder.
        texts: the texts; equal ones are encoded once.
        done: called with the number of texts of every finished batch.
    """
    distinct = list(dict.fromkeys(texts))
    arrays: list[StateArray] = [np.empty((0, encoder.layers, encoder.dim), np.float16)]
    starts, lengths = np.zeros((2, len(distinct)), dtype=np.int64)  # (texts,) each
    end = 0
    for group, states in encode_groups(encoder, distinct):
        for position, array in zip(group, states, strict=True):
            starts[position], lengths[position] = end, len(array)
            end += len(array)
            arrays.append(array)
        done(len(group))
    place = {text: position for position, text in enumerate(distinct)}
    order = np.array([place[text] for text in texts], dtype=np.int64)  # (texts,)
    return TokenStates(np.concatenate(arrays), starts[order], lengths[order])
