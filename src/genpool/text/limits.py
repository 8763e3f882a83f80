"""How much of a text is read: memory follows the tokens that are used, not the characters given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from typing import Self

#: characters of a word that the character CNN reads; the longest words of languages have below 200
MAX_WORD_CHARACTERS = 256
#: a maximum length in tokens is one in characters too: this many for each of them
CHARACTERS_PER_TOKEN = 64
#: characters of the texts that are split into words together
GROUP_CHARACTERS = 2**20


@dataclass
class TruncationReport:
    """How much the limits have removed so far.

    Attributes:
        sentences: the number of sentences that were longer than the maximum length.
        tokens: the number of tokens that were removed from them.
        characters: the number of characters at their ends that were not even split into tokens.
        words: the number of words of which only the first MAX_WORD_CHARACTERS characters count.
    """

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


def count_long_words(words: Iterable[str]) -> int:
    """Returns how many words have more characters than the character CNN reads."""
    return sum(len(word) > MAX_WORD_CHARACTERS for word in words)


def text_groups(
    texts: Iterable[str], max_texts: int | None = None, max_characters: int = GROUP_CHARACTERS
) -> Iterator[list[str]]:
    """Yields texts in groups whose size is bounded, whatever the texts are.

    Args:
        texts: any iterable of texts.
        max_texts: texts in a group. None (default): any number.
        max_characters: a group ends with the text that reaches this. Default: GROUP_CHARACTERS.
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
