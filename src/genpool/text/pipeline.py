"""From a sentence to a batch: tokenizer, vocabulary and characters together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import tokenizers

from genpool.errors import InputError
from genpool.text.batch import Batch, WordTable
from genpool.text.tokenizer import Token, WordTokenizer
from genpool.text.vocabulary import UNKNOWN, Characters, Vocabulary

Item = TypeVar("Item")


@dataclass
class TruncationReport:
    """How much a maximum length has removed so far.

    Attributes:
        sentences: the number of sentences that were longer than the maximum.
        tokens: the number of tokens that were removed from them.
    """

    sentences: int = 0
    tokens: int = 0

    def __str__(self) -> str:
        noun = "sentence was" if self.sentences == 1 else "sentences were"
        return f"{self.sentences:,} {noun} truncated by {self.tokens:,} tokens in total"


class TextPipeline:
    """Everything that turns text into ids.

    Args:
        tokenizer: splits a sentence into words.
        vocabulary: the known words.
        characters: the known characters.
        sentence_ends: add a begin and an end token to every sentence. They are real positions for
            encoder and pooling. Default: False.
        max_length: keep only the first tokens of a longer sentence (begin and end tokens are not
            counted); `cut` counts what was removed. Default: None, which keeps all.

    Raises:
        InputError: max_length is below 1.
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
        self.cut = TruncationReport()

    @classmethod
    def from_tokenizers(
        cls,
        tokenizer: tokenizers.Tokenizer,
        characters: str,
        sentence_ends: bool = False,
        max_length: int | None = None,
        lower_case_fallback: bool = True,
    ) -> TextPipeline:
        """Returns the pipeline of a saved folder.

        Args:
            tokenizer: the content of `tokenizer.json`: how to split, and the vocabulary.
            characters: all known characters, in the order of their ids.
            sentence_ends: as above. Default: False.
            max_length: as above. Default: None.
            lower_case_fallback: as in `Vocabulary`. Default: True.

        Raises:
            ConfigError: the tokenizer does not say how to split a sentence.
            InputError: the ids of the words are not exactly 0 ... n - 1, the special entries are
                missing, or a character occurs twice.
        """
        return cls(
            WordTokenizer.from_tokenizers(tokenizer),
            Vocabulary.from_ids(tokenizer.get_vocab(), lower_case_fallback),
            Characters(characters),
            sentence_ends,
            max_length,
        )

    def to_tokenizers(self) -> tokenizers.Tokenizer:
        """Returns the tokenizer that is saved as `tokenizer.json`: splitting and vocabulary."""
        return self.tokenizer.to_tokenizers(self.vocabulary.ids, self.vocabulary.words[UNKNOWN])

    def tokens(self, sentence: str) -> list[Token]:
        """Returns the tokens of a sentence with their offsets, truncated to the maximum length."""
        return self._truncated(self.tokenizer.tokens(sentence))

    def words(self, sentence: str, tokenized: bool = False) -> list[str]:
        """Returns the words of a sentence, truncated to the maximum length.

        Args:
            sentence: the text.
            tokenized: the text is tokens joined by spaces, and is split only there.
                Default: False.
        """
        if tokenized:
            return self._truncated(sentence.split())
        return [token.text for token in self.tokens(sentence)]

    def words_batch(self, sentences: Sequence[str]) -> list[list[str]]:
        """Returns the words of many sentences, split on all cores."""
        return [self._truncated(words) for words in self.tokenizer.words_batch(sentences)]

    def _truncated(self, tokens: list[Item]) -> list[Item]:
        if self.max_length is None or len(tokens) <= self.max_length:
            return tokens
        self.cut.sentences += 1
        self.cut.tokens += len(tokens) - self.max_length
        return tokens[: self.max_length]

    def table(self) -> WordTable:
        """Returns an empty word table, for text that is batched many times."""
        return WordTable(self.vocabulary, self.characters)

    def batch(self, sentences: Sequence[Sequence[str]]) -> Batch:
        """Returns tokenized sentences as one batch."""
        table = self.table()
        return table.batch([table.row(words, self.sentence_ends) for words in sentences])
