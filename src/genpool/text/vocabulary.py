"""Words and characters, and the numbers that stand for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from genpool.errors import InputError
from genpool.text.tokenizer import canonical

PAD, UNKNOWN, BEGIN, END = range(4)
#: the first entries of every vocabulary, in the order of the four numbers above
SPECIAL_WORDS = ("<pad>", "<unk>", "<s>", "</s>")


def count_words(sentences: Iterable[Iterable[str]]) -> Counter[str]:
    """How often each word occurs in tokenised sentences; all quote marks count as one."""
    return Counter(canonical(word) for sentence in sentences for word in sentence)


class Vocabulary:
    """Words by number: four special entries, then the rest.

    A word is looked up as it stands, then in lower case; what is not found is UNKNOWN, but still
    seen by its letters (`Characters`). Case is kept: "Brown" and "brown" may both be entries.
    """

    def __init__(self, words: Sequence[str]) -> None:
        if tuple(words[:4]) != SPECIAL_WORDS:
            raise InputError(
                f"a vocabulary begins with {SPECIAL_WORDS}; this one with {tuple(words[:4])}."
            )
        self.words = tuple(words)
        self.ids = {word: number for number, word in enumerate(self.words)}
        if len(self.ids) != len(self.words):
            twice = next(word for word, count in Counter(self.words).items() if count > 1)
            raise InputError(f"the word {twice!r} stands more than once in the vocabulary.")

    @classmethod
    def build(
        cls, counts: Mapping[str, int], minimum_count: int = 1, more_words: Iterable[str] = ()
    ) -> Vocabulary:
        """Words that occur often enough, most frequent first, then `more_words`.

        more_words: typically the words of a vector file, so that words that are not in the
        training text have their vectors too.
        """
        frequent = [word for word, count in counts.items() if count >= minimum_count]
        frequent.sort(key=lambda word: (-counts[word], word))
        ordered = dict.fromkeys([*frequent, *map(canonical, more_words)])
        for special in SPECIAL_WORDS:
            ordered.pop(special, None)
        return cls([*SPECIAL_WORDS, *ordered])

    def __len__(self) -> int:
        return len(self.words)

    def id(self, word: str) -> int:
        """The number of a word: exact, then lower case, then UNKNOWN."""
        word = canonical(word)
        found = self.ids.get(word)
        if found is None:
            found = self.ids.get(word.lower(), UNKNOWN)
        # A text may spell "<pad>": that is a word nobody knows, not padding.
        return found if found > END else UNKNOWN


class Characters:
    """Characters by number. 0 stands for none, 1 for an unknown one, 2 and 3 spell the sentence
    ends, whose "word" is a single letter of their own."""

    FIRST = 4

    def __init__(self, characters: str) -> None:
        if len(set(characters)) != len(characters):
            twice = next(letter for letter, count in Counter(characters).items() if count > 1)
            raise InputError(f"the character {twice!r} stands more than once.")
        self.characters = characters
        self.ids = {letter: number for number, letter in enumerate(characters, self.FIRST)}

    @classmethod
    def build(cls, words: Iterable[str]) -> Characters:
        """All characters of the words, most frequent first."""
        counts = Counter(letter for word in words for letter in word)
        return cls("".join(sorted(counts, key=lambda letter: (-counts[letter], letter))))

    def __len__(self) -> int:
        return self.FIRST + len(self.characters)

    def spell(self, word: str) -> list[int]:
        """The numbers of a word's letters; quote marks of every kind are spelled alike."""
        return [self.ids.get(letter, UNKNOWN) for letter in canonical(word)]
