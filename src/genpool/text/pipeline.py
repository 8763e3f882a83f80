"""From a sentence to a batch: tokenizer, vocabulary and characters together."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Self, TypeVar

import tokenizers

from genpool.errors import InputError
from genpool.tensors.annotations import Annotation, Annotator
from genpool.text.batch import Batch, WordTable
from genpool.text.stored_tokenizer import StoredTokenizer
from genpool.text.tokenizer import Token, WordTokenizer
from genpool.text.vocabulary import (
    MAX_WORD_CHARACTERS,
    UNKNOWN,
    CharacterNgrams,
    Characters,
    Vocabulary,
)

#: a maximum length in tokens is one in characters too: this many for each of them
CHARACTERS_PER_TOKEN = 64
#: characters of the texts that are split into words together
GROUP_CHARACTERS = 2**20

Item = TypeVar("Item")


@dataclass
class TruncationReport:
    """How much the limits have removed so far: sentences longer than the maximum length, tokens
    removed from them, characters at their ends that were not even split into tokens, and words of
    which only the first MAX_WORD_CHARACTERS characters count."""

    sentences: int = 0
    tokens: int = 0
    characters: int = 0
    words: int = 0

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
        parts = []
        if self.sentences or not self.words:
            noun = "sentence was" if self.sentences == 1 else "sentences were"
            rest = f" and {self.characters:,} characters" if self.characters else ""
            parts.append(
                f"{self.sentences:,} {noun} truncated by {self.tokens:,} tokens{rest} in total"
            )
        if self.words:
            noun = "word was" if self.words == 1 else "words were"
            parts.append(f"{self.words:,} {noun} truncated to {MAX_WORD_CHARACTERS} characters")
        return "; ".join(parts)


class TextPipeline:
    """Everything that turns text into ids.

    Args:
        tokenizer: splits a sentence into words.
        vocabulary: the known words.
        characters: the known characters, or the n-grams of words without an entry.
        sentence_ends: add a begin and an end token to every sentence. They are real positions for
            encoder and pooling. Default: False.
        max_length: keep only the first tokens of a longer sentence (begin and end tokens are not
            counted), of its first CHARACTERS_PER_TOKEN * max_length characters; `cut` counts what
            was removed. Default: None, which keeps all.

    Raises:
        InputError: max_length is below 1.
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
        """Returns the pipeline of a saved folder, with its content of `tokenizer.json`.

        `ngrams` takes the place of the characters. InputError if the ids of the words are not
        exactly 0 ... n - 1, the special entries are missing, or a character occurs twice.
        """
        return cls(
            WordTokenizer(tokenizer.rules, folding),
            Vocabulary.from_ids(tokenizer.vocabulary, lower_case_fallback, folding),
            ngrams or Characters(characters),
            sentence_ends,
            max_length,
        )

    def to_tokenizers(self) -> tokenizers.Tokenizer:
        """Returns the tokenizer that is saved as `tokenizer.json`: splitting and vocabulary."""
        return self.tokenizer.to_tokenizers(self.vocabulary.ids, self.vocabulary.words[UNKNOWN])

    def tokens(self, sentence: str) -> list[Token]:
        """Returns the tokens of a sentence with their offsets, truncated to the maximum length."""
        read = self._read_part(sentence)
        return self._truncated(self.tokenizer.tokens(read), sentence, read)

    def words(self, sentence: str, tokenized: bool = False) -> list[str]:
        """Returns the words of a sentence, truncated to the maximum length; a tokenized one is
        tokens joined by spaces, and is split only there."""
        read = self._read_part(sentence)
        words = read.split() if tokenized else self.tokenizer.words(read)
        return self._counted(self._truncated(words, sentence, read), sentence)

    def words_batch(self, sentences: Sequence[str]) -> list[list[str]]:
        """Returns the words of many sentences, split on all cores."""
        if sum(map(len, sentences)) > GROUP_CHARACTERS:
            groups = text_groups(sentences)
            return [words for group in groups for words in self._words_together(group)]
        return self._words_together(sentences)

    def _words_together(self, sentences: Sequence[str]) -> list[list[str]]:
        parts = [self._read_part(sentence) for sentence in sentences]
        split = zip(self.tokenizer.words_batch(parts), sentences, parts, strict=True)
        return [
            self._counted(self._truncated(words, sentence, part), sentence)
            for words, sentence, part in split
        ]

    def is_truncated(self, sentence: str) -> bool:
        """Returns whether a sentence has more tokens than the maximum length."""
        read = self._read_part(sentence)
        longest = len(read) if self.max_length is None else self.max_length
        return len(read) < len(sentence) or len(self.tokenizer.words(read)) > longest

    def _read_part(self, sentence: str) -> str:
        """Returns what is split into tokens: all of a sentence, unless it is far too long."""
        if self.max_length is None:
            return sentence
        return sentence[: CHARACTERS_PER_TOKEN * self.max_length]

    def _truncated(self, tokens: list[Item], sentence: str, read: str) -> list[Item]:
        if self.max_length is None:
            return tokens
        if len(tokens) > self.max_length:
            self.cut.tokens += len(tokens) - self.max_length
        elif len(read) == len(sentence):
            return tokens
        self.cut.sentences += 1
        self.cut.characters += len(sentence) - len(read)
        return tokens[: self.max_length]

    def _counted(self, words: list[str], sentence: str) -> list[str]:
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
    """Yields texts in groups of at most `max_texts`.

    A group ends with the text that reaches `max_characters`, so that memory is bounded.
    """
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
