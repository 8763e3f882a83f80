"""Characters of a word, several at a time: what tells words apart that have no entry.

The characters 3 to 5 in a row of `<word>`, and the whole of it, are numbers of a table of fixed
size, as in fastText: a word that was never seen has a vector, and words with a common stem, or
numbers with common digits, have similar ones.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

from genpool.errors import InputError
from genpool.text.folding import folded

#: of a longer word, only the beginning is read
MAX_CHARACTERS = 40


class CharacterNgrams:
    """The ids of a word's n-grams; it takes the place of `Characters`.

    The ids 0 to 3 are reserved as in `Characters`. The id of an n-gram is its CRC-32 (of UTF-8)
    modulo the number of buckets: two n-grams may share one.

    Args:
        buckets: the number of ids, without the reserved ones.
        sizes: characters of an n-gram. Default: (3, 4, 5).

    Raises:
        InputError: a number is below 1.
    """

    FIRST_ID = 4
    #: no single characters have ids
    characters = ""
    #: n-grams stand for a word without an entry
    spells_known = False

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
        """The number of ids, the reserved ones included."""
        return self.FIRST_ID + self.buckets

    def ids_of(self, word: str) -> list[int]:
        """Returns the ids of the n-grams of a word, in its folded form; one at least."""
        return [
            self.FIRST_ID + zlib.crc32(part.encode("utf-8", "surrogatepass")) % self.buckets
            for part in self.parts(word)
        ]

    def parts(self, word: str) -> list[str]:
        """Returns the n-grams of a word, each once: the whole of `<word>`, then the short ones.

        Example:
            >>> CharacterNgrams(100, sizes=(3,)).parts("cat")
            ['<cat>', '<ca', 'cat', 'at>']
        """
        marked = f"<{folded(word)[:MAX_CHARACTERS]}>"
        short = (
            marked[start : start + size]
            for size in self.sizes
            for start in range(len(marked) - size + 1)
        )
        return list(dict.fromkeys([marked, *short]))
