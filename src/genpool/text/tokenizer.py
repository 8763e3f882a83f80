"""From a sentence to its words, each with its offsets in the sentence.

The work is done by a pre-tokenizer of the `tokenizers` library, so that a saved `tokenizer.json`
holds the rules themselves. `normalizer` changes what the rules see, so that `donʼt` is split like
`don't`; `canonical` and `folded` are the forms in which a word is looked up.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple

import tokenizers
from tokenizers import Regex, models, normalizers, pre_tokenizers

from genpool.errors import ConfigError, unknown_name
from genpool.text import penn

#: the entry of a vocabulary for all words that have none
UNKNOWN_WORD = "<unk>"
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


# The conventions come first: they look at the spaces that the second step removes.
_PENN = ((penn.PATTERN, "isolated"), (penn.SPACES, "removed"))
#: patterns at which each of the rules splits, one after the other, and what becomes of a match
RULES = {
    "penn": _PENN,
    "parts": (*_PENN, (penn.PARTS, "isolated")),
    "whitespace": _PENN[1:],
}


@cache  # compiling a regular expression takes longer than splitting a hundred sentences
def _split_at(pattern: str, behavior: str) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(pattern), behavior)


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
        rules: "penn" for the conventions of the Penn Treebank (`it's.` is `it`, `'s`, `.`), "parts"
            for the same with the parts of `well-known` and `his/her` as words, or "whitespace" for
            the words of `str.split()`. Default: "penn"; ConfigError for any other.
        folding: split words with other apostrophes, in full width, or with characters without
            width as their plain forms; the tokens are still as written. Default: False.

    Example:
        >>> WordTokenizer().words("It's red.")
        ['It', "'s", 'red', '.']
    """

    def __init__(self, rules: str = "penn", folding: bool = False) -> None:
        if rules not in RULES:
            raise ConfigError(unknown_name("tokenizer rules", rules, RULES))
        self.rules, self.folding = rules, folding
        splits = [_split_at(*split) for split in RULES[rules]]
        self.pre_tokenizer = splits[0] if len(splits) == 1 else pre_tokenizers.Sequence(splits)

    def tokens(self, sentence: str) -> list[Token]:
        """Returns the words of a sentence with their offsets; only spaces are in none of them, and
        with folding characters without width between words."""
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
        """The library's tokenizer, which needs no vocabulary to split."""
        return self.to_tokenizers({UNKNOWN_WORD: 0})

    def to_tokenizers(self, vocabulary: dict[str, int]) -> tokenizers.Tokenizer:
        """Returns a tokenizer of the `tokenizers` library, to be saved as `tokenizer.json`."""
        tokenizer = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN_WORD))
        tokenizer.pre_tokenizer = self.pre_tokenizer
        if self.folding:
            tokenizer.normalizer = normalizer()
        return tokenizer

    def _offsets(self, sentence: str) -> list[tuple[int, int]]:
        try:
            encoding = self._splitter.encode(sentence, add_special_tokens=False)
        except (TypeError, UnicodeEncodeError):
            # Half of a surrogate pair cannot be passed to the library; a replacement character can,
            # and keeps the offsets.
            return self._offsets(_LONE_SURROGATE.sub("\ufffd", sentence))
        return self._separate(sentence, encoding.offsets)

    def _separate(self, sentence: str, offsets: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Returns offsets that do not overlap, with all characters that were normalized to a word.

        One character may be normalized to two words, and several characters to one.
        """
        if not self.folding or sentence.isascii():
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
    """Returns the form in which a word is looked up: curly and Penn's quotes become straight."""
    straight = word if word.isascii() else word.translate(_CURLY_QUOTES)
    return _PENN_QUOTES.get(straight, straight)


def folded(word: str) -> str:
    """Returns the form of a word that all its ways of writing share: small letters, without accents
    and characters without width, quotes and dashes of ASCII, no full-width letters or ligatures."""
    if not word.isascii():
        visible = _INVISIBLE_IN_WORD.sub("", word).translate(_STRAIGHT)
        parts = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", visible))
        word = "".join(part for part in parts if unicodedata.category(part) != "Mn")
    return _PENN_QUOTES.get(word, word.lower())


# --- What tokenizer.json may contain: exactly the parts that genpool writes ----------------------

# The `tokenizers` library knows many more. Some of them run for minutes on a short text (a regular
# expression of a stranger) or end the process (damaged tables): they are refused before anything is
# built, and the file itself never reaches the library.

#: parts of the file that genpool leaves empty
EMPTY_PARTS = ("truncation", "padding", "added_tokens", "post_processor", "decoder")


class StoredTokenizer(NamedTuple):
    """The content of tokenizer.json: the ids of the words, and the name of the rules."""

    vocabulary: dict[str, int]
    rules: str


def read_tokenizer(content: bytes | str) -> StoredTokenizer:
    """Returns the content of a tokenizer.json; ConfigError where genpool did not write it.

    Whether the ids of the words are 0 ... n - 1 is checked by `Vocabulary`.
    """
    try:
        parts = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"it cannot be read as JSON: {error}") from None
    if not isinstance(parts, dict):
        raise ConfigError(f"it cannot be read: it is a {type(parts).__name__}, expected a dict.")
    for name in EMPTY_PARTS:
        if parts.get(name):
            raise _refused(name, parts[name], "none")
    # It is compared, not used: a tokenizer with folding has one of its own.
    if parts.get("normalizer") not in (None, _plain(normalizer())):
        raise _refused("normalizer", parts["normalizer"], "none, or that of folding")
    model = parts.get("model")
    if not isinstance(model, dict) or model.get("type", "WordLevel") != "WordLevel":
        raise _refused("model", model, "a WordLevel model")
    words = model.get("vocab")
    # bool is a kind of int.
    if not isinstance(words, dict) or not set(map(type, words.values())) <= {int}:
        raise _refused("model.vocab", words, "the id of every word")
    try:
        "".join(words).encode()
    except UnicodeEncodeError:
        raise ConfigError("a word of model.vocab has half of a surrogate pair.") from None
    splitter = parts.get("pre_tokenizer")
    for rules in RULES:
        if _includes(splitter, _plain(WordTokenizer(rules).pre_tokenizer)):
            return StoredTokenizer(words, rules)
    raise _refused("pre_tokenizer", splitter, f"that of the rules {', '.join(RULES)}")


def _plain(part: Any) -> Any:
    """Returns what is saved of a part of a tokenizer."""
    return json.loads(part.__getstate__())


def _includes(part: Any, expected: Any) -> bool:
    """Whether a part has what genpool writes; a later version of the library may write more."""
    if isinstance(expected, dict) and isinstance(part, dict):
        return all(_includes(part.get(name), value) for name, value in expected.items())
    if isinstance(expected, list) and isinstance(part, list):
        return len(part) == len(expected) and all(map(_includes, part, expected))
    return bool(part == expected)


def _refused(name: str, value: Any, expected: str) -> ConfigError:
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        value = value["type"]
    shown = repr(value)
    shown = shown if len(shown) < 80 else f"{shown[:80]} ..."
    return ConfigError(f"{name} is {shown}; expected {expected}. Was it written by genpool?")
