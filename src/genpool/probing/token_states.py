"""The token states of many texts, end to end in one array: in memory, or mapped from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genpool.disk.row_cache import RowCache
from genpool.inference.sentence_vectors import length_groups
from genpool.probing.token_encoders import StateArray, TokenEncoder
from genpool.tensors.packing import Packing

#: texts that are encoded together, fewer where they are long
ENCODING_BATCH = 32
#: characters of a token, to guess the length of a text before it is split
CHARACTERS_PER_TOKEN = 4
#: bytes of states that are computed before they are written to a cache
WRITE_BYTES = 2**24
#: characters of the fingerprint in the name of a cache's folder
NAME_CHARACTERS = 24


@dataclass(frozen=True)
class TokenStates:
    """States of texts in the order of the texts.

    `rows` are those of all texts, (tokens, layers, dim), in half precision; `starts` (texts,) is
    the first row of each text, and `lengths` (texts,) its number of tokens.
    """

    rows: StateArray
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lengths)

    def select(self, texts: NDArray[np.int64]) -> TokenStates:
        """Returns the states of some of the texts; no state is copied."""
        return TokenStates(self.rows, self.starts[texts], self.lengths[texts])

    def batch(
        self,
        texts: NDArray[np.int64],
        token_dropout: float = 0.0,
        random: torch.Generator | None = None,
    ) -> tuple[Tensor, Packing]:
        """Returns the states of the texts at these positions (batch,) as packed rows.

        `token_dropout` is the share of tokens that are left out at random, drawn by `random`. The
        rows are (rows, layers, dim), in single precision; the packing says where they belong.
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


def encode_states(
    encoder: TokenEncoder,
    texts: Sequence[str],
    done: Callable[[int], object] = lambda count: None,
) -> TokenStates:
    """Returns the states of texts in memory; equal texts are encoded once.

    `done` is called with the number of texts of every finished batch.
    """
    arrays: list[StateArray] = [np.empty((0, encoder.layers, encoder.dim), np.float16)]
    place: dict[str, tuple[int, int]] = {}  # start and length of each text
    end = 0
    for group, states in _encode_groups(encoder, list(dict.fromkeys(texts))):
        for text, array in zip(group, states, strict=True):
            place[text] = end, len(array)
            end += len(array)
            arrays.append(array)
        done(len(group))
    places = np.array([place[text] for text in texts], dtype=np.int64).reshape(-1, 2)
    return TokenStates(np.concatenate(arrays), places[:, 0], places[:, 1])


def open_state_cache(folder: str | Path, encoder: TokenEncoder) -> RowCache:
    """Returns the cache of an encoder's states, in a folder named after its fingerprint."""
    name = encoder.fingerprint.removeprefix("sha256:")[:NAME_CHARACTERS]
    return RowCache(Path(folder) / name, encoder.fingerprint, (encoder.layers, encoder.dim))


def cached_states(
    cache: RowCache,
    encoder: TokenEncoder,
    texts: Sequence[str],
    done: Callable[[int], object] = lambda count: None,
) -> TokenStates:
    """Returns the states of texts, mapped from the cache; missing ones are computed and kept."""
    missing = cache.missing(texts)
    done(len(texts) - len(missing))
    keys: list[str] = []
    arrays: list[StateArray] = []
    for group, states in _encode_groups(encoder, missing):
        keys += group
        arrays += states
        if sum(array.nbytes for array in arrays) >= WRITE_BYTES:
            cache.append(keys, arrays)
            keys, arrays = [], []
        done(len(group))
    if keys:
        cache.append(keys, arrays)
    places = cache.places(texts)  # (texts, 2)
    return TokenStates(cache.rows(), places[:, 0], places[:, 1])


def _encode_groups(
    encoder: TokenEncoder, texts: Sequence[str]
) -> Iterator[tuple[list[str], list[StateArray]]]:
    """Yields texts of similar lengths, and their states."""
    guesses = [len(text) // CHARACTERS_PER_TOKEN + 1 for text in texts]
    for positions in length_groups(guesses, ENCODING_BATCH):
        group = [texts[position] for position in positions]
        yield group, encoder.states(group)
