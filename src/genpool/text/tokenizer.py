"""From a sentence to its words, each with its offsets in the sentence.

The work is done by a pre-tokenizer of the `tokenizers` library, so that a saved `tokenizer.json`
holds the rules themselves: another program splits the same way.

Some forms of writing mean the same: accents, capitals, curly quotes, full-width, zero-width.
`normalizer` changes what the rules see, so that `donʼt` is split like `don't`; the offsets stay
those of the sentence as written. `canonical` and `folded` are the forms in which a word is looked
up.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import NamedTuple

import tokenizers
from tokenizers import Regex, models, normalizers, pre_tokenizers

from genpool.errors import ConfigError, unknown_name
from genpool.text import penn

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
#: what stands for an apostrophe: modifier letters, prime, acute accent, curly quotes
APOSTROPHES = "\u02bb\u02bc\u02c8\u2032\u00b4\u2018\u2019\u201b\uff07"
DOUBLE_QUOTES = "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\uff02"
DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
# Characters without width; the joiner is kept where it joins two emoji.
_INVISIBLE = r"[\x{200B}\x{200C}\x{200E}\x{200F}\x{202A}-\x{202E}\x{2060}-\x{2064}\x{FEFF}\x{180E}]"
_LONE_JOINER = r"\x{200D}(?!\p{Extended_Pictographic})"
_INVISIBLE_CHARACTERS = "\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\u180e\u00ad"
_INVISIBLE_IN_WORD = re.compile(f"[{_INVISIBLE_CHARACTERS}]")
_REST_OF_CHARACTER = re.compile(rf"(?:[{_INVISIBLE_CHARACTERS}]*[^\s{_INVISIBLE_CHARACTERS}])+")
_CURLY_QUOTES = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b", "'") | dict.fromkeys("\u201c\u201d\u201e\u201f", '"')
)
_STRAIGHT = str.maketrans(
    dict.fromkeys(APOSTROPHES, "'") | dict.fromkeys(DOUBLE_QUOTES, '"') | dict.fromkeys(DASHES, "-")
)
_PENN_QUOTES = {"``": '"', "''": '"', "`": "'"}


class Token(NamedTuple):
    """A word and its offsets, counted in characters: `sentence[start:end] == text`."""

    text: str
    start: int
    end: int


# Compiling a regular expression takes longer than splitting a hundred sentences.
@cache
def _whitespace() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(penn.SPACES), "removed")


@cache
def _penn() -> pre_tokenizers.PreTokenizer:
    # The conventions come first: they look at the spaces that the second step removes.
    isolated = pre_tokenizers.Split(Regex(penn.PATTERN), "isolated")
    return pre_tokenizers.Sequence([isolated, _whitespace()])


@cache
def _parts() -> pre_tokenizers.PreTokenizer:
    inside = pre_tokenizers.Split(Regex(penn.PARTS), "isolated")
    return pre_tokenizers.Sequence([_penn(), inside])


RULES: dict[str, Callable[[], pre_tokenizers.PreTokenizer]] = {
    "penn": _penn,
    "parts": _parts,
    "whitespace": _whitespace,
}


def normalizer() -> normalizers.Normalizer:
    """Returns what a tokenizer with folding does to a sentence before it splits it."""
    return normalizers.Sequence(
        [
            normalizers.Replace(Regex(rf"{_INVISIBLE}|\x{{00AD}}|{_LONE_JOINER}"), ""),
            normalizers.Replace(Regex(f"[{APOSTROPHES}]"), "'"),
            normalizers.Replace(Regex(f"[{DOUBLE_QUOTES}]"), '"'),
            normalizers.NFKC(),
        ]
    )


class WordTokenizer:
    """Splits a sentence into words; characters and their case are not changed.

    Args:
        rules: "penn" for the conventions of the Penn Treebank (`it's.` is `it`, `'s`, `.`), or
            "parts" for the same with the parts of `well-known` and `his/her` as words, or
            "whitespace" for the words of `str.split()`, which leaves tokenized text as it is.
            Default: "penn".
        folding: split words with other apostrophes, in full width, or with characters without
            width as their plain forms; the tokens are still as written. Default: False.

    Raises:
        ConfigError: there are no such rules.

    Example:
        >>> WordTokenizer().words("It's red.")
        ['It', "'s", 'red', '.']
    """

    def __init__(self, rules: str = "penn", folding: bool = False) -> None:
        if rules not in RULES:
            raise ConfigError(unknown_name("tokenizer rules", rules, RULES))
        self.rules = rules
        self._pre_tokenizer = RULES[rules]()
        self._normalizer = normalizer() if folding else None

    @property
    def folding(self) -> bool:
        """Whether other ways of writing a word are split as the plain one."""
        return self._normalizer is not None

    def tokens(self, sentence: str) -> list[Token]:
        """Returns the words of a sentence with their offsets.

        Only spaces are in none of them, and with folding characters without width between words.
        """
        return [Token(sentence[start:end], start, end) for start, end in self._offsets(sentence)]

    def words(self, sentence: str) -> list[str]:
        """Returns the words of a sentence, without offsets."""
        return [sentence[start:end] for start, end in self._offsets(sentence)]

    def words_batch(self, sentences: Sequence[str]) -> list[list[str]]:
        """Returns the words of many sentences, split on all cores."""
        try:
            encodings = self._splitter.encode_batch(list(sentences), add_special_tokens=False)
        except (TypeError, UnicodeEncodeError):  # half of a surrogate pair, in one of them
            return [self.words(sentence) for sentence in sentences]
        return [
            [sentence[start:end] for start, end in self._separate(sentence, encoding.offsets)]
            for sentence, encoding in zip(sentences, encodings, strict=True)
        ]

    @cached_property
    def _splitter(self) -> tokenizers.Tokenizer:
        """The library's tokenizer, which splits batches; it needs no vocabulary for that."""
        return self.to_tokenizers({"": 0}, "")

    def to_tokenizers(self, vocabulary: dict[str, int], unknown: str) -> tokenizers.Tokenizer:
        """Returns a tokenizer of the `tokenizers` library, to be saved as `tokenizer.json`; words
        outside of the vocabulary get the id of its entry `unknown`."""
        if unknown not in vocabulary:
            raise ConfigError(f"the unknown word {unknown!r} is not in the vocabulary; add it.")
        tokenizer = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=unknown))
        tokenizer.pre_tokenizer = self._pre_tokenizer
        if self._normalizer is not None:
            tokenizer.normalizer = self._normalizer
        return tokenizer

    def _offsets(self, sentence: str) -> list[tuple[int, int]]:
        try:
            return self._split(sentence)
        except (TypeError, UnicodeEncodeError):
            # Half of a surrogate pair cannot be passed to the library; a replacement character can,
            # and keeps the offsets.
            return self._split(_LONE_SURROGATE.sub("\ufffd", sentence))

    def _split(self, sentence: str) -> list[tuple[int, int]]:
        if self._normalizer is not None:
            encoding = self._splitter.encode(sentence, add_special_tokens=False)
            return self._separate(sentence, encoding.offsets)
        return [offsets for _, offsets in self._pre_tokenizer.pre_tokenize_str(sentence)]

    def _separate(self, sentence: str, offsets: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Returns offsets that do not overlap, with all characters that were normalized to a word.

        One character may be normalized to two words, and several characters to one.
        """
        if self._normalizer is None or sentence.isascii():
            return offsets
        separate: list[tuple[int, int]] = []
        for start, end in offsets:
            if separate and start < separate[-1][1]:
                separate[-1] = separate[-1][0], max(end, separate[-1][1])
            elif start < end:
                separate.append((start, end))
        # A letter and the accents behind it are normalized to one character, which has the offsets
        # of the letter alone; they reach to the next word at most.
        for at, (start, end) in enumerate(separate):
            limit = separate[at + 1][0] if at + 1 < len(separate) else len(sentence)
            if rest := _REST_OF_CHARACTER.match(sentence, end, limit):
                separate[at] = start, rest.end()
        return separate


def canonical(word: str) -> str:
    """Returns the form in which a word is looked up: curly and Penn quotes become straight ones.

    Opening and closing double quotes (two backticks, two apostrophes, curly) become `"`; a single
    curly quote, and Penn's single backtick, become an apostrophe.
    """
    straight = word if word.isascii() else word.translate(_CURLY_QUOTES)
    return _PENN_QUOTES.get(straight, straight)


def folded(word: str) -> str:
    """Returns the form of a word that all its ways of writing share.

    Capitals become small letters, accents and characters without width are removed, quotes and
    dashes become those of ASCII, and letters of compatibility (full-width, ligatures) plain ones.

    Example:
        >>> folded("Café"), folded("\uff57\uff4f\uff52\uff44"), folded("N\u2019T")
        ('cafe', 'word', "n't")
    """
    if not word.isascii():
        visible = _INVISIBLE_IN_WORD.sub("", word).translate(_STRAIGHT)
        parts = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", visible))
        word = "".join(part for part in parts if unicodedata.category(part) != "Mn")
    return _PENN_QUOTES.get(word, word.lower())
