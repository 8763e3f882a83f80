"""From a sentence to a batch: tokenizer, vocabulary and characters together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from genpool.errors import InputError
from genpool.text.batch import Batch, WordTable
from genpool.text.tokenizer import Token, WordTokenizer
from genpool.text.vocabulary import Characters, Vocabulary

Piece = TypeVar("Piece")


@dataclass
class CutReport:
    """What a maximum length has done so far."""

    sentences: int = 0
    tokens: int = 0

    def __str__(self) -> str:
        return f"{self.sentences} sentences were cut, by {self.tokens} tokens in all"


class TextPipeline:
    """Everything that turns text into numbers.

    Args:
        sentence_ends: add a begin and an end token to every sentence. They are real positions for
            encoder and pooling.
        max_length: keep at most this many tokens of a sentence (ends not counted). What it does is
            counted in `cut`. None keeps all.
    """

    def __init__(
        self,
        tokenizer: WordTokenizer,
        vocabulary: Vocabulary,
        characters: Characters,
        sentence_ends: bool = False,
        max_length: int | None = None,
    ) -> None:
        if max_length is not None and max_length < 1:
            raise InputError(
                f"max_length is {max_length}; expected 1 or more, or None for no limit."
            )
        self.tokenizer, self.vocabulary, self.characters = tokenizer, vocabulary, characters
        self.sentence_ends, self.max_length = sentence_ends, max_length
        self.cut = CutReport()

    def tokens(self, sentence: str) -> list[Token]:
        """The tokens of a sentence with their offsets, within the maximum length."""
        return self._within_limit(self.tokenizer.tokens(sentence))

    def words(self, sentence: str, tokenized: bool = False) -> list[str]:
        """The words of a sentence, within the maximum length.

        Args:
            tokenized: the text is tokens joined by spaces, and is split there only.
        """
        if tokenized:
            return self._within_limit(sentence.split())
        return [token.text for token in self.tokens(sentence)]

    def words_batch(self, sentences: Sequence[str]) -> list[list[str]]:
        """The words of many sentences, split on all cores."""
        return [self._within_limit(each) for each in self.tokenizer.words_batch(sentences)]

    def _within_limit(self, tokens: list[Piece]) -> list[Piece]:
        if self.max_length is None or len(tokens) <= self.max_length:
            return tokens
        self.cut.sentences += 1
        self.cut.tokens += len(tokens) - self.max_length
        return tokens[: self.max_length]

    def table(self) -> WordTable:
        """An empty word table, for text that will be batched many times."""
        return WordTable(self.vocabulary, self.characters)

    def batch(self, sentences: Sequence[Sequence[str]]) -> Batch:
        """Tokenised sentences as one batch."""
        table = self.table()
        return table.batch([table.row(words, self.sentence_ends) for words in sentences])
