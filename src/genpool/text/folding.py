"""Forms of writing that mean the same: accents, capitals, curly quotes, full-width, zero-width.

`normalizer` changes what the rules of a tokenizer see, so that `donʼt` is split like `don't`; the
offsets stay those of the sentence as written. `folded` is the form in which a word is looked up.
"""

from __future__ import annotations

import re
import unicodedata

from tokenizers import Regex, normalizers

#: what stands for an apostrophe: modifier letters, prime, acute accent, curly quotes
APOSTROPHES = "\u02bb\u02bc\u02c8\u2032\u00b4\u2018\u2019\u201b\uff07"
DOUBLE_QUOTES = "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\uff02"
DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u00ad"
# Characters without width; the joiner is kept where it joins two emoji.
_INVISIBLE = r"[\x{200B}\x{200C}\x{200E}\x{200F}\x{202A}-\x{202E}\x{2060}-\x{2064}\x{FEFF}\x{180E}]"
_LONE_JOINER = r"\x{200D}(?!\p{Extended_Pictographic})"
_INVISIBLE_CHARACTERS = "\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\u180e\u00ad"
_INVISIBLE_IN_WORD = re.compile(f"[{_INVISIBLE_CHARACTERS}]")
_REST_OF_CHARACTER = re.compile(rf"(?:[{_INVISIBLE_CHARACTERS}]*[^\s{_INVISIBLE_CHARACTERS}])+")
_STRAIGHT = str.maketrans(
    dict.fromkeys(APOSTROPHES, "'")
    | dict.fromkeys(DOUBLE_QUOTES, '"')
    | dict.fromkeys(DASHES.replace("\u00ad", ""), "-")
)
_PENN_QUOTES = {"``": '"', "''": '"', "`": "'"}


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


def word_end(sentence: str, end: int, limit: int) -> int:
    """Returns where a word ends whose normalized form ends with the character before `end`.

    A letter and the accents behind it are normalized to one character, which has the offsets of the
    letter alone.

    Args:
        sentence: the sentence as written.
        end: the end of the word, as the library has it.
        limit: the start of the next word, or the end of the sentence.
    """
    rest = _REST_OF_CHARACTER.match(sentence, end, limit)
    return rest.end() if rest else end


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
