"""From a sentence to its words, each with its place in the sentence.

The work is done by a pre-tokenizer of the `tokenizers` library, so that a saved `tokenizer.json`
holds the rules themselves: a later version of genpool, or another program, splits the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import tokenizers
from tokenizers import Regex, models, pre_tokenizers

from genpool.errors import ConfigError, unknown_name
from genpool.text import penn

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_SINGLE_QUOTES = dict.fromkeys("\u2018\u2019\u201a\u201b", "'")
_DOUBLE_QUOTES = dict.fromkeys("\u201c\u201d\u201e\u201f", '"')
_STRAIGHT = str.maketrans(_SINGLE_QUOTES | _DOUBLE_QUOTES)
_PENN_QUOTES = {"``": '"', "''": '"', "`": "'"}


class Token(NamedTuple):
    """A word and its place: `sentence[start:end] == text`, counted in characters."""

    text: str
    start: int
    end: int


def _whitespace() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(f"[{penn.SPACE}]+"), "removed")


def _penn() -> pre_tokenizers.PreTokenizer:
    # The conventions come first: they look at the spaces that the second step takes away.
    apart = pre_tokenizers.Split(Regex(penn.PATTERN), "isolated")
    return pre_tokenizers.Sequence([apart, _whitespace()])


RULES: dict[str, Callable[[], pre_tokenizers.PreTokenizer]] = {
    "penn": _penn,
    "whitespace": _whitespace,
}
STORED = "stored"  # the name of rules that came with a file and are none of these


class WordTokenizer:
    """Splits a sentence into words; the letters and their case stay as they are.

    rules:
        `penn`        the conventions of the Penn Treebank: `it's.` is `it`, `'s`, `.`
        `whitespace`  the words of `str.split()`: text already tokenised passes through unchanged

    Example:
        >>> WordTokenizer().words("It's red.")
        ['It', "'s", 'red', '.']
    """

    def __init__(self, rules: str = "penn") -> None:
        if rules not in RULES:
            raise ConfigError(unknown_name("tokenizer rules", rules, RULES))
        self.rules = rules
        self._pre_tokenizer = RULES[rules]()

    def tokens(self, sentence: str) -> list[Token]:
        """The words of a sentence in order; every character that is no space is in one of them."""
        return [Token(sentence[start:end], start, end) for start, end in self._places(sentence)]

    def words(self, sentence: str) -> list[str]:
        """The words alone."""
        return [sentence[start:end] for start, end in self._places(sentence)]

    def words_batch(self, sentences: Sequence[str]) -> list[list[str]]:
        """The words of many sentences, split on all cores."""
        try:
            found = self._splitter.encode_batch(list(sentences), add_special_tokens=False)
        except (TypeError, UnicodeEncodeError):  # half of a surrogate pair, in one of them
            return [self.words(sentence) for sentence in sentences]
        return [
            [sentence[start:end] for start, end in each.offsets]
            for sentence, each in zip(sentences, found, strict=True)
        ]

    @cached_property
    def _splitter(self) -> tokenizers.Tokenizer:
        """The library's tokenizer, which splits batches; every word is the same to it."""
        return self.to_tokenizers({"": 0}, "")

    def to_tokenizers(self, vocabulary: dict[str, int], unknown: str) -> tokenizers.Tokenizer:
        """A complete tokenizer of the `tokenizers` library, to be saved as `tokenizer.json`.

        `unknown` is the entry of the vocabulary that stands for every word it does not hold.
        """
        if unknown not in vocabulary:
            raise ConfigError(f"the unknown word {unknown!r} is not in the vocabulary; add it")
        tokenizer = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=unknown))
        tokenizer.pre_tokenizer = self._pre_tokenizer
        return tokenizer

    @classmethod
    def from_tokenizers(cls, tokenizer: tokenizers.Tokenizer) -> WordTokenizer:
        """The splitting that a `tokenizer.json` holds, even where today's rules differ from it."""
        stored = tokenizer.pre_tokenizer
        if stored is None:
            known = ", ".join(sorted(RULES))
            raise ConfigError(
                "the tokenizer has no pre-tokenizer, so it does not say how to split a sentence; "
                f"make one with WordTokenizer(rules).to_tokenizers(...). Known rules: {known}."
            )
        words = cls.__new__(cls)
        words.rules = _name_of(stored)
        words._pre_tokenizer = stored
        return words

    def _places(self, sentence: str) -> list[tuple[int, int]]:
        try:
            pieces = self._pre_tokenizer.pre_tokenize_str(sentence)
        except UnicodeEncodeError:
            # Half of a surrogate pair cannot reach the library; one symbol in its place can, and
            # keeps the offsets.
            pieces = self._pre_tokenizer.pre_tokenize_str(_LONE_SURROGATE.sub("\ufffd", sentence))
        return [place for _, place in pieces]


def _name_of(stored: pre_tokenizers.PreTokenizer) -> str:
    """Which of today's rules a stored pre-tokenizer is, letter by letter."""
    state = stored.__getstate__()
    return next((name for name, make in RULES.items() if make().__getstate__() == state), STORED)


def canonical(word: str) -> str:
    """The spelling under which a word is looked up: curly quotes and Penn's as the typewriter's.

    Opening and closing double quotes (two backticks, two apostrophes, curly) become `"`; a single
    curly quote, and Penn's single backtick, become an apostrophe.
    """
    straight = word if word.isascii() else word.translate(_STRAIGHT)
    return _PENN_QUOTES.get(straight, straight)
