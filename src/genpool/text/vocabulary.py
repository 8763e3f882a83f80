"""Words, characters and n-grams of characters, and their ids."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from genpool.errors import InputError
from genpool.text.tokenizer import canonical, folded

PAD, UNKNOWN, BEGIN, END = range(4)
#: the first entries of every vocabulary, in the order of the four ids above
SPECIAL_WORDS = ("<pad>", "<unk>", "<s>", "</s>")
#: characters of a word that the character CNN reads; the longest words of languages have below 200
MAX_WORD_CHARACTERS = 256
#: of a longer word, only the beginning has n-grams
MAX_NGRAM_CHARACTERS = 40


class Vocabulary:
    """The known words and their ids: four special entries, then the rest.

    A word is looked up as written, then (with `lower_case_fallback`) in lower case; with `folding`
    in its folded form alone, in which the entries are (`genpool.text.tokenizer.folded`). Any other
    word has the id UNKNOWN, but its characters are still read (`Characters`). Case is kept: "Brown"
    and "brown" may both be entries. InputError if `words`, in the order of their ids, do not begin
    with `SPECIAL_WORDS`, or one occurs twice.
    """

    def __init__(
        self, words: Sequence[str], lower_case_fallback: bool = True, folding: bool = False
    ) -> None:
        if tuple(words[:4]) != SPECIAL_WORDS:
            raise InputError(
                f"a vocabulary starts with {SPECIAL_WORDS}; this one starts with "
                f"{tuple(words[:4])}."
            )
        self.words = tuple(words)
        self.lower_case_fallback, self.folding = lower_case_fallback, folding
        self.ids = dict(zip(self.words, range(len(self.words)), strict=True))
        _require_unique("word", self.words, self.ids)

    @classmethod
    def build(
        cls,
        counts: Mapping[str, int],
        minimum_count: int = 1,
        extra_words: Iterable[str] = (),
        lower_case_fallback: bool = True,
        folding: bool = False,
    ) -> Vocabulary:
        """Returns the vocabulary of a text from the counts of its words, most frequent first.

        Words below the minimum count are left out; `extra_words`, such as those of a vector file,
        are added at the end. With `folding`, words and counts are folded here.
        """
        form = folded if folding else canonical
        if folding:
            total = Counter[str]()
            for word, count in counts.items():
                total[folded(word)] += count
            counts = total
        frequent = [word for word, count in counts.items() if count >= minimum_count]
        frequent.sort(key=lambda word: (-counts[word], word))
        words = dict.fromkeys([*SPECIAL_WORDS, *frequent, *map(form, extra_words)])
        return cls([*words], lower_case_fallback, folding)

    @classmethod
    def from_ids(
        cls, ids: Mapping[str, int], lower_case_fallback: bool = True, folding: bool = False
    ) -> Vocabulary:
        """Returns the vocabulary of a stored mapping from words to ids; InputError if these are not
        exactly 0 ... n - 1: a word would get the vector of another one."""
        words = sorted(ids, key=ids.__getitem__)
        expected, counts = range(len(ids)), Counter(ids.values())
        wrong = [
            f"{word!r} has {at}" for word, at in ids.items() if counts[at] > 1 or at not in expected
        ]
        if wrong:
            raise InputError(
                f"no word has the id {min(set(expected) - set(counts))}; {', '.join(wrong[:3])}. "
                f"Expected the ids 0 to {len(ids) - 1}, one for each of the {len(ids)} words. Was "
                "the file edited?"
            )
        return cls(words, lower_case_fallback, folding)

    def __len__(self) -> int:
        return len(self.words)

    def id(self, word: str) -> int:
        """Returns the id of a word, or UNKNOWN."""
        word = folded(word) if self.folding else canonical(word)
        word_id = self.ids.get(word)
        if word_id is None and self.lower_case_fallback and not self.folding:
            word_id = self.ids.get(word.lower())
        # A text may contain "<pad>": that is an unknown word, not padding.
        return word_id if word_id is not None and word_id > END else UNKNOWN


class Characters:
    """The known characters and their ids; InputError if one occurs twice.

    Reserved are 0 (no character), 1 (an unknown one), and 2 and 3, the single "characters" of the
    begin and end tokens. The known ones follow in their order.
    """

    FIRST_ID = 4  # __len__ counts the reserved ids too
    spells_known = True  # the characters of words with an entry are read too
    buckets = 0  # of n-grams (`CharacterNgrams`)

    def __init__(self, characters: str) -> None:
        self.characters = characters
        self.ids = {character: at for at, character in enumerate(characters, self.FIRST_ID)}
        _require_unique("character", characters, self.ids)

    @classmethod
    def build(cls, words: Iterable[str]) -> Characters:
        """Returns all characters of the words, most frequent first."""
        counts = Counter(character for word in words for character in word)
        return cls("".join(sorted(counts, key=lambda character: (-counts[character], character))))

    def with_words(self, words: Iterable[str]) -> Characters:
        """Returns these characters with the new ones of some words after them."""
        new = {character for word in words for character in word} - set(self.characters)
        return Characters(self.characters + "".join(sorted(new)))

    def __len__(self) -> int:
        return self.FIRST_ID + len(self.characters)

    def ids_of(self, word: str) -> list[int]:
        """Returns the ids of a word's first MAX_WORD_CHARACTERS; quote marks are normalized."""
        read = canonical(word[:MAX_WORD_CHARACTERS])
        return [self.ids.get(character, UNKNOWN) for character in read]


class CharacterNgrams:
    """The ids of a word's n-grams, as in fastText; it takes the place of `Characters`.

    The n-grams are 3 to 5 characters in a row of `<word>`, and the whole of it: a word that was
    never seen has a vector, and words with a common stem, or numbers with common digits, have
    similar ones. The id of an n-gram, after the reserved ones of `Characters`, is its CRC-32 (of
    UTF-8) modulo the number of buckets: two n-grams may share one.
    """

    FIRST_ID = 4
    characters = ""  # no single characters have ids
    spells_known = False  # n-grams stand for a word without an entry

    def __init__(self, buckets: int, sizes: Sequence[int] = (3, 4, 5)) -> None:
        if min(buckets, len(sizes), *sizes) < 1:
            raise InputError(
                f"buckets={buckets}, sizes={tuple(sizes)}; expected numbers of 1 or more."
            )
        self.buckets, self.sizes = buckets, tuple(sizes)

    def with_words(self, words: Iterable[str]) -> CharacterNgrams:
        """Returns these n-grams, which know all words."""
        return self

    def __len__(self) -> int:
        return self.FIRST_ID + self.buckets

    def ids_of(self, word: str) -> list[int]:
        """Returns the ids of the n-grams of a word, in its folded form; one at least."""
        return [
            self.FIRST_ID + zlib.crc32(part.encode("utf-8", "surrogatepass")) % self.buckets
            for part in self.parts(word)
        ]

    def parts(self, word: str) -> list[str]:
        """Returns the n-grams of a word, each once: `<cat>`, `<ca`, `cat`, `at>`."""
        marked = f"<{folded(word)[:MAX_NGRAM_CHARACTERS]}>"
        sizes = ((size, range(len(marked) - size + 1)) for size in self.sizes)
        short = (marked[start : start + size] for size, starts in sizes for start in starts)
        return list(dict.fromkeys([marked, *short]))


def _require_unique(kind: str, items: Sequence[str], ids: Mapping[str, int]) -> None:
    if len(ids) < len(items):
        repeated = next(item for item, count in Counter(items).items() if count > 1)
        raise InputError(f"the {kind} {repeated!r} occurs more than once.")
