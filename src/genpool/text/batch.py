"""Sentences as tensors. A batch lists every distinct word once, and where it occurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from genpool.tensors.annotations import Annotation, pad_annotations
from genpool.text.vocabulary import (
    BEGIN,
    END,
    MAX_WORD_CHARACTERS,
    PAD,
    SPECIAL_WORDS,
    UNKNOWN,
    CharacterNgrams,
    Characters,
    Vocabulary,
)


@dataclass(frozen=True)
class Batch:
    """Sentences, padded on the right, in terms of their distinct words.

    Attributes:
        word_ids: (distinct,), the vocabulary id of each distinct word.
        character_ids: (characters,), the characters of all distinct words, one word after the
            other; the ids of n-grams for a model that reads those (`CharacterNgrams`).
        character_counts: (distinct,), how many of them belong to each word.
        index: (batch, time), the distinct word at each position; 0 at padding.
        mask: (batch, time), True at real tokens.
        annotations: (batch, time, columns), integers that the encoder reads beside the vectors
            (`genpool.tensors.annotations`); None for most encoders.
    """

    word_ids: Tensor
    character_ids: Tensor
    character_counts: Tensor
    index: Tensor
    mask: Tensor
    annotations: Tensor | None = None

    @property
    def lengths(self) -> Tensor:
        """(batch,): the number of tokens of each sentence."""
        return self.mask.sum(dim=1)

    @property
    def ids(self) -> Tensor:
        """(batch, time): the vocabulary id of each token, PAD at padding."""
        if not len(self.word_ids):
            return torch.full_like(self.index, PAD)
        return self.word_ids[self.index].masked_fill(~self.mask, PAD)

    def to(self, device: torch.device | str) -> Batch:
        """Returns the batch on another device."""
        tensors = {field.name: getattr(self, field.name) for field in fields(self)}
        present = {name: tensor for name, tensor in tensors.items() if tensor is not None}
        return replace(self, **{name: tensor.to(device) for name, tensor in present.items()})


class WordTable:
    """The distinct words of a text, with their ids and characters; makes batches of its sentences.

    One table may serve a whole data set, whose sentences are then small arrays of integers. With
    `spell_known`, the n-grams of words with an entry are listed too, for training in which known
    words are hidden.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        characters: Characters | CharacterNgrams,
        spell_known: bool = False,
    ) -> None:
        self.vocabulary, self.characters = vocabulary, characters
        self._spells_known = spell_known or characters.spells_known
        self._indices: dict[str, int] = {}
        self._word_ids: list[int] = []
        self._character_ids: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
        # Begin and end are not words of a text: no token can have these names with a space.
        self.begin = self._add(f" {SPECIAL_WORDS[BEGIN]}", BEGIN, [BEGIN])
        self.end = self._add(f" {SPECIAL_WORDS[END]}", END, [END])

    def __len__(self) -> int:
        return len(self._word_ids)

    def index_of(self, word: str) -> int:
        """Returns the index of a word in this table; a new word is added."""
        index = self._indices.get(word)
        return self._add_word(word) if index is None else index

    def row(
        self, words: Sequence[str], sentence_ends: bool
    ) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        """Returns one sentence as indices of this table, with begin and end tokens if wanted."""
        indices = [self.index_of(word) for word in words]
        if sentence_ends:
            indices = [self.begin, *indices, self.end]
        return np.array(indices, dtype=np.int32)

    def batch(
        self,
        rows: Sequence[np.ndarray[tuple[int], np.dtype[np.int32]]],
        annotations: Sequence[Annotation] | None = None,
    ) -> Batch:
        """Returns rows of this table, with annotations if the encoder reads any, as one batch."""
        lengths = np.array([len(row) for row in rows], dtype=np.int64)  # (batch,)
        flat = np.concatenate(rows) if len(rows) else np.empty(0, dtype=np.int32)  # (tokens,)
        distinct, inverse = np.unique(flat, return_inverse=True)
        mask = np.arange(lengths.max(initial=0)) < lengths[:, None]  # (batch, time)
        index = np.zeros(mask.shape, dtype=np.int64)  # (batch, time)
        index[mask] = inverse
        characters = [self._character_ids[word] for word in distinct]
        padded = None
        if annotations is not None:
            padded = torch.from_numpy(pad_annotations(annotations, mask.shape[1]))
        return Batch(
            word_ids=torch.tensor([self._word_ids[word] for word in distinct], dtype=torch.long),
            character_ids=torch.from_numpy(np.concatenate([np.empty(0, np.int64), *characters])),
            character_counts=torch.tensor([len(word) for word in characters], dtype=torch.long),
            index=torch.from_numpy(index),
            mask=torch.from_numpy(mask),
            annotations=padded,
        )

    def _add_word(self, word: str) -> int:
        word_id = self.vocabulary.id(word)
        is_spelled = self._spells_known or word_id == UNKNOWN
        character_ids = self.characters.ids_of(word) if is_spelled else []
        if len(word) > MAX_WORD_CHARACTERS:
            # One entry for all words that count as the same; no token has a space.
            word = f"{word[:MAX_WORD_CHARACTERS]} {word_id}"
            if word in self._indices:
                return self._indices[word]
        return self._add(word, word_id, character_ids)

    def _add(self, word: str, word_id: int, character_ids: list[int]) -> int:
        index = self._indices[word] = len(self._word_ids)
        self._word_ids.append(word_id)
        self._character_ids.append(np.array(character_ids, dtype=np.int64))
        return index
