"""From a sentence to a batch: tokenizer, vocabulary and characters together.

A batch lists every distinct word once, and where it occurs.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import Self

import numpy as np
import tokenizers
import torch
from numpy.typing import NDArray
from torch import Tensor

from genpool.errors import InputError, counted
from genpool.tensors.arrays import Annotation, Annotator, pad_annotations
from genpool.text.tokenizer import StoredTokenizer, Token, WordTokenizer
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

#: a maximum length in tokens is one in characters too: this many for each of them
CHARACTERS_PER_TOKEN = 64
#: characters of the texts that are split into words together
GROUP_CHARACTERS = 2**20


@dataclass(frozen=True)
class Batch:
    """Sentences, padded on the right, in terms of their distinct words."""

    word_ids: Tensor  # (distinct,), the vocabulary id of each distinct word
    #: (characters,), those of all distinct words, one word after the other; the ids of n-grams for
    #: a model that reads those (`CharacterNgrams`)
    character_ids: Tensor
    character_counts: Tensor  # (distinct,), how many of them belong to each word
    index: Tensor  # (batch, time), the distinct word at each position; 0 at padding
    mask: Tensor  # (batch, time), True at real tokens
    #: (batch, time, columns), integers that the encoder reads beside the vectors
    #: (`genpool.tensors.arrays`); None for most encoders
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
        tensors = {name: value for name, value in vars(self).items() if value is not None}
        return replace(self, **{name: tensor.to(device) for name, tensor in tensors.items()})


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
        self._character_ids: list[NDArray[np.int64]] = []
        # Begin and end are not words of a text: no token can have these names with a space.
        self.begin = self._add(f" {SPECIAL_WORDS[BEGIN]}", BEGIN, [BEGIN])
        self.end = self._add(f" {SPECIAL_WORDS[END]}", END, [END])

    def __len__(self) -> int:
        return len(self._word_ids)

    def index_of(self, word: str) -> int:
        """Returns the index of a word in this table; a new word is added."""
        if (index := self._indices.get(word)) is not None:
            return index
        word_id = self.vocabulary.id(word)
        is_spelled = self._spells_known or word_id == UNKNOWN
        character_ids = self.characters.ids_of(word) if is_spelled else []
        if len(word) > MAX_WORD_CHARACTERS:
            # One entry for all words that count as the same; no token has a space.
            word = f"{word[:MAX_WORD_CHARACTERS]} {word_id}"
            if word in self._indices:
                return self._indices[word]
        return self._add(word, word_id, character_ids)

    def row(self, words: Sequence[str], sentence_ends: bool) -> NDArray[np.int32]:
        """Returns one sentence as indices of this table, with begin and end tokens if wanted."""
        indices = [self.index_of(word) for word in words]
        if sentence_ends:
            indices = [self.begin, *indices, self.end]
        return np.array(indices, dtype=np.int32)

    def batch(
        self, rows: Sequence[NDArray[np.int32]], annotations: Sequence[Annotation] | None = None
    ) -> Batch:
        """Returns rows of this table, with annotations if the encoder reads any, as one batch."""
        lengths = np.array([len(row) for row in rows], dtype=np.int64)  # (batch,)
        flat = np.concatenate(rows) if len(rows) else np.empty(0, dtype=np.int32)  # (tokens,)
        distinct, inverse = np.unique(flat, return_inverse=True)
        mask = np.arange(lengths.max(initial=0)) < lengths[:, None]  # (batch, time)
        index = np.zeros(mask.shape, dtype=np.int64)  # (batch, time)
        index[mask] = inverse
        characters = [self._character_ids[word] for word in distinct]
        arrays = {
            "word_ids": np.array([self._word_ids[word] for word in distinct], np.int64),
            "character_ids": np.concatenate([np.empty(0, np.int64), *characters]),
            "character_counts": np.array([len(word) for word in characters], np.int64),
            "index": index,
            "mask": mask,
        }
        if annotations is not None:
            arrays["annotations"] = pad_annotations(annotations, mask.shape[1])
        return Batch(**{name: torch.from_numpy(array) for name, array in arrays.items()})

    def _add(self, word: str, word_id: int, character_ids: list[int]) -> int:
        index = self._indices[word] = len(self._word_ids)
        self._word_ids.append(word_id)
        self._character_ids.append(np.array(character_ids, dtype=np.int64))
        return index


@dataclass
class TruncationReport:
    """How much the limits have removed so far."""

    sentences: int = 0  # longer than the maximum length
    tokens: int = 0  # removed from them
    characters: int = 0  # at their ends, that were not even split into tokens
    words: int = 0  # of which only the first MAX_WORD_CHARACTERS characters count

    def __bool__(self) -> bool:
        return bool(self.sentences or self.words)

    def __iadd__(self, other: TruncationReport) -> Self:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        return self

    def __sub__(self, other: TruncationReport) -> TruncationReport:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return TruncationReport(*(mine - theirs for mine, theirs in pairs))

    def __str__(self) -> str:
        def truncated(count: int, noun: str) -> str:
            return f"{counted(count, noun)} {'was' if count == 1 else 'were'} truncated"

        parts = []
        if self.sentences or not self.words:
            rest = f" and {self.characters:,} characters" if self.characters else ""
            cut = f"by {self.tokens:,} tokens{rest} in total"
            parts.append(f"{truncated(self.sentences, 'sentence')} {cut}")
        if self.words:
            parts.append(f"{truncated(self.words, 'word')} to {MAX_WORD_CHARACTERS} characters")
        return "; ".join(parts)


class TextPipeline:
    """Everything that turns text into ids.

    Args:
        tokenizer: splits a sentence into words.
        vocabulary: the known words.
        characters: the known characters, or the n-grams of words without an entry.
        sentence_ends: add a begin and an end token, real positions for encoder and pooling, to
            every sentence. Default: False.
        max_length: keep only the first tokens of a longer sentence (ends are not counted), of its
            first CHARACTERS_PER_TOKEN * max_length characters; `cut` counts what was removed.
            Default: None, which keeps all.
    """

    def __init__(
        self,
        tokenizer: WordTokenizer,
        vocabulary: Vocabulary,
        characters: Characters | CharacterNgrams,
        sentence_ends: bool = False,
        max_length: int | None = None,
    ) -> None:
        if max_length is not None and max_length < 1:
            raise InputError(
                f"max_length is {max_length}; expected 1 or more, or None for no limit."
            )
        self.tokenizer, self.vocabulary, self.characters = tokenizer, vocabulary, characters
        self.sentence_ends, self.max_length = sentence_ends, max_length
        self.cut = TruncationReport()
        #: makes what the encoder reads beside the vectors of tokens; None for most encoders
        self.annotator: Annotator | None = None

    @classmethod
    def from_stored(
        cls,
        tokenizer: StoredTokenizer,
        characters: str,
        sentence_ends: bool = False,
        max_length: int | None = None,
        lower_case_fallback: bool = True,
        folding: bool = False,
        ngrams: CharacterNgrams | None = None,
    ) -> TextPipeline:
        """Returns the pipeline of a saved folder; `ngrams` take the place of the characters."""
        return cls(
            WordTokenizer(tokenizer.rules, folding),
            Vocabulary.from_ids(tokenizer.vocabulary, lower_case_fallback, folding),
            ngrams or Characters(characters),
            sentence_ends,
            max_length,
        )

    def to_tokenizers(self) -> tokenizers.Tokenizer:
        """Returns the tokenizer that is saved as `tokenizer.json`: splitting and vocabulary."""
        return self.tokenizer.to_tokenizers(self.vocabulary.ids)

    def tokens(self, sentence: str) -> list[Token]:
        """Returns the tokens of a sentence with their offsets, truncated to the maximum length."""
        read = self._read_part(sentence)
        tokens = self.tokenizer.tokens(read)
        return tokens[: len(self._truncated([token.text for token in tokens], sentence, read))]

    def with_ends(self, tokens: list[Token]) -> list[Token]:
        """Returns the tokens of a sentence with begin and end, if any, which are at (-1, -1)."""
        if not self.sentence_ends:
            return tokens
        names = self.vocabulary.words
        return [Token(names[BEGIN], -1, -1), *tokens, Token(names[END], -1, -1)]

    def words(self, sentence: str, tokenized: bool = False) -> list[str]:
        """Returns the words of a sentence, truncated to the maximum length; a tokenized one is
        tokens joined by spaces, and is split only there."""
        read = self._read_part(sentence)
        words = read.split() if tokenized else self.tokenizer.words(read)
        return self._truncated(words, sentence, read)

    def words_batch(self, sentences: Sequence[str]) -> list[list[str]]:
        """Returns the words of many sentences, split on all cores."""
        split: list[list[str]] = []
        for group in text_groups(sentences):
            parts = [self._read_part(sentence) for sentence in group]
            together = zip(self.tokenizer.words_batch(parts), group, parts, strict=True)
            split += [self._truncated(*row) for row in together]
        return split

    def is_truncated(self, sentence: str) -> bool:
        """Returns whether a sentence has more tokens than the maximum length."""
        if self.max_length is None:
            return False
        read = self._read_part(sentence)
        return len(read) < len(sentence) or len(self.tokenizer.words(read)) > self.max_length

    def _read_part(self, sentence: str) -> str:
        """Returns what is split into tokens: all of a sentence, unless it is far too long."""
        if self.max_length is None:
            return sentence
        return sentence[: CHARACTERS_PER_TOKEN * self.max_length]

    def _truncated(self, words: list[str], sentence: str, read: str) -> list[str]:
        """Returns the first words of what was read of a sentence, and counts what is cut."""
        longest = len(words) if self.max_length is None else self.max_length
        if len(words) > longest or len(read) < len(sentence):
            self.cut.sentences += 1
            self.cut.tokens += max(len(words) - longest, 0)
            self.cut.characters += len(sentence) - len(read)
            words = words[:longest]
        if len(sentence) > MAX_WORD_CHARACTERS:
            self.cut.words += sum(len(word) > MAX_WORD_CHARACTERS for word in words)
        return words

    def table(self, spell_known: bool = False) -> WordTable:
        """Returns an empty `WordTable`, for text that is batched many times."""
        return WordTable(self.vocabulary, self.characters, spell_known)

    def batch(self, sentences: Sequence[Sequence[str]]) -> Batch:
        """Returns tokenized sentences as one batch."""
        table = self.table()
        rows = [table.row(words, self.sentence_ends) for words in sentences]
        return table.batch(rows, self.annotations(sentences))

    def with_annotator(self, annotator: Annotator | None) -> TextPipeline:
        """Returns the same pipeline with an annotator; itself for None."""
        if annotator is None:
            return self
        changed = copy.copy(self)
        changed.annotator = annotator
        return changed

    def annotations(self, sentences: Sequence[Sequence[str]]) -> list[Annotation] | None:
        """Returns the annotations of tokenized sentences; None without an annotator."""
        if self.annotator is None:
            return None
        return self.annotator.annotate(sentences, self.max_length, self.sentence_ends)


def text_groups(
    texts: Iterable[str], max_texts: int | None = None, max_characters: int = GROUP_CHARACTERS
) -> Iterator[list[str]]:
    """Yields groups of up to `max_texts` texts; one that reaches `max_characters` ends there."""
    group: list[str] = []
    characters = 0
    for text in texts:
        group.append(text)
        characters += len(text)
        if characters >= max_characters or len(group) == max_texts:
            yield group
            group, characters = [], 0
    if group:
        yield group
