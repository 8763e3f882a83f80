"""Sentences as tensors. A batch names each distinct word once, and says where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from genpool.text.vocabulary import BEGIN, END, PAD, SPECIAL_WORDS, Characters, Vocabulary


@dataclass(frozen=True)
class Batch:
    """Sentences, padded on the right, by the distinct words that they are made of.

    word_ids       (distinct,)     vocabulary number of each distinct word
    letters        (letters,)      the letters of all distinct words, one word after the other
    character_counts  (distinct,)     how many of them belong to each word
    index          (batch, time)   which distinct word stands where; 0 at padding
    mask           (batch, time)   True at real tokens
    """

    word_ids: Tensor
    letters: Tensor
    character_counts: Tensor
    index: Tensor
    mask: Tensor

    @property
    def lengths(self) -> Tensor:
        """(batch,): the number of tokens of each sentence."""
        return self.mask.sum(dim=1)

    @property
    def ids(self) -> Tensor:
        """(batch, time): the vocabulary number of each token, PAD at padding."""
        if not len(self.word_ids):
            return torch.full_like(self.index, PAD)
        return self.word_ids[self.index].masked_fill(~self.mask, PAD)

    def to(self, device: torch.device | str) -> Batch:
        return Batch(*(getattr(self, field.name).to(device) for field in fields(self)))


class WordTable:
    """The distinct words of some text: number, spelling, and the way back to batches.

    One table may serve a whole data set, whose sentences are then small arrays of integers.
    """

    def __init__(self, vocabulary: Vocabulary, characters: Characters) -> None:
        self.vocabulary, self.characters = vocabulary, characters
        self._places: dict[str, int] = {}
        self._word_ids: list[int] = []
        self._spellings: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
        # The ends are not words of a text: they are entered under names no token can have.
        self.begin = self._enter(f" {SPECIAL_WORDS[BEGIN]}", BEGIN, [BEGIN])
        self.end = self._enter(f" {SPECIAL_WORDS[END]}", END, [END])

    def __len__(self) -> int:
        return len(self._word_ids)

    def place(self, word: str) -> int:
        """The place of a word in this table; a new word is entered."""
        found = self._places.get(word)
        if found is None:
            found = self._enter(word, self.vocabulary.id(word), self.characters.spell(word))
        return found

    def row(
        self, words: Sequence[str], sentence_ends: bool
    ) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        """One sentence as places in this table."""
        places = [self.place(word) for word in words]
        if sentence_ends:
            places = [self.begin, *places, self.end]
        return np.array(places, dtype=np.int32)

    def batch(self, rows: Sequence[np.ndarray[tuple[int], np.dtype[np.int32]]]) -> Batch:
        """Rows of this table as one batch, in the order given."""
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        flat = np.concatenate(rows) if len(rows) else np.empty(0, dtype=np.int32)
        distinct, inverse = np.unique(flat, return_inverse=True)
        mask = np.arange(lengths.max(initial=0)) < lengths[:, None]  # (batch, time)
        index = np.zeros(mask.shape, dtype=np.int64)
        index[mask] = inverse
        spellings = [self._spellings[place] for place in distinct]
        return Batch(
            word_ids=torch.tensor([self._word_ids[place] for place in distinct], dtype=torch.long),
            letters=torch.from_numpy(np.concatenate([*spellings, np.empty(0, dtype=np.int64)])),
            character_counts=torch.tensor([len(word) for word in spellings], dtype=torch.long),
            index=torch.from_numpy(index),
            mask=torch.from_numpy(mask),
        )

    def _enter(self, word: str, word_id: int, spelling: list[int]) -> int:
        place = self._places[word] = len(self._word_ids)
        self._word_ids.append(word_id)
        self._spellings.append(np.array(spelling, dtype=np.int64))
        return place
