"""The lexicon of the generated corpus, from the tables in words.toml beside this file."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

WORDS: dict[str, str] = tomllib.loads(
    files("genpool.data.rules").joinpath("words.toml").read_text(encoding="utf-8")
)


class Tree:
    """A taxonomy, read from lines of the form "broad word: narrower word, narrower word"."""

    def __init__(self, text: str) -> None:
        self._parent: dict[str, str] = {}
        self._children: dict[str, list[str]] = {}
        for word, narrower in table(text, ": "):
            self._children[word] = narrower.split(", ")
            self._parent |= dict.fromkeys(self._children[word], word)
        roots = [word for word in self._children if word not in self._parent]
        self.words = [word for root in roots for word in self.under(root)]

    def parent(self, word: str) -> str:
        """Returns the next broader word, or "" if there is none that can be said."""
        parent = self._parent.get(word, "")
        return "" if parent.startswith("[") else parent

    def children(self, word: str) -> list[str]:
        """Returns the words one step narrower."""
        return self._children.get(word, [])

    @cache  # noqa: B019 - the few trees live as long as the program
    def under(self, word: str) -> tuple[str, ...]:
        """Returns the word and all narrower words."""
        below = [narrow for child in self.children(word) for narrow in self.under(child)]
        return tuple(below if word.startswith("[") else [word, *below])

    def rivals(self, word: str) -> list[str]:
        """Returns the words that exclude this one: its sisters or, of an only child, its aunts."""
        if word not in self._parent:
            return []
        sisters = [other for other in self.children(self._parent[word]) if other != word]
        return sisters or self.rivals(self._parent[word])

    def related(self, word: str, other: str) -> bool:
        """Returns whether one is a kind of the other."""
        return word in self.under(other) or other in self.under(word)

    def fits(self, word: str, kinds: tuple[str, ...]) -> bool:
        """Returns whether the word is one of these kinds, narrower or broader."""
        return any(self.related(word, kind) for kind in kinds)

    def common(self, word: str, other: str) -> str:
        """Returns the narrowest word for both, or "" if there is none that can be said."""
        while word and other not in self.under(word):
            word = self.parent(word)
        return word


def table(text: str, separator: str = ", ") -> list[list[str]]:
    """Returns the columns of each row; rows end with a line or a semicolon."""
    lines = filter(str.strip, text.replace(";", "\n").splitlines())
    return [[column.strip() for column in line.split(separator)] for line in lines]


NOUNS = Tree(WORDS["nouns"])
PLACES = Tree(WORDS["places"])
TIMES = Tree(WORDS["times"])
VERBS = Tree(WORDS["verbs"])

# Verbs in one row cannot be done at once by the same one (to the same thing).
EXCLUSIVE = table(WORDS["exclusive"])


class Frame(NamedTuple):
    """Who does it, to what (nothing for "sleep"), and where that makes sense."""

    agents: tuple[str, ...]
    objects: tuple[str, ...]
    places: tuple[str, ...]


FRAMES = {
    verb: Frame(*(() if cell == "-" else tuple(cell.split(", ")) for cell in cells))
    for verb, *cells in table(WORDS["frames"], "|")
}


def frame_of(verb: str) -> Frame:
    return FRAMES[verb if verb in FRAMES else VERBS.parent(verb)]


ONE_WAY = ("chase", "follow", "lead")  # if A does it to B, B does not do it to A
EITHER_WAY = ("watch", "look at", "help", "greet", "photograph")  # B may do it to A as well
COUNTED = ("carry", "hold", "buy", "sell", "plant", "draw", "wash", "order")  # many things at once
SHARED = ("carry", "wash", "repair", "push", "pull", "chase", "follow", "watch", "help", "greet")
TOGETHER = (*(verb for verb in FRAMES if not FRAMES[verb].objects), *SHARED)  # done by many at once
TRANSITIVE = tuple(verb for verb in FRAMES if FRAMES[verb].objects)


class Quantifier(NamedTuple):
    """ "At least two": from two to any number."""

    words: str
    least: int
    most: int


_ENDLESS = 99
NUMBERS = ("one", "two", "three", "four", "five", "six")
_COUNTED = tuple(enumerate(NUMBERS, 1))
QUANTIFIERS = (
    Quantifier("no", 0, 0),
    Quantifier("zero", 0, 0),
    *(Quantifier(word, n, n) for n, word in _COUNTED),
    *(Quantifier(f"exactly {word}", n, n) for n, word in _COUNTED),
    *(Quantifier(f"at least {word}", n, _ENDLESS) for n, word in _COUNTED),
    *(Quantifier(f"at most {word}", 0, n) for n, word in _COUNTED),
    *(Quantifier(f"more than {word}", n + 1, _ENDLESS) for n, word in _COUNTED[1:]),
    *(Quantifier(f"fewer than {word}", 0, n - 1) for n, word in _COUNTED[1:]),
)


class Modifier(NamedTuple):
    """Adjectives that exclude each other, and what they are said of, in the order of English."""

    words: tuple[str, ...]
    kinds: tuple[str, ...]
    relative: bool  # a small horse is not a small animal


_GROUPS = dict(table(WORDS["groups"], ": "))
MODIFIERS = tuple(
    Modifier(tuple(words.split(", ")), tuple(kinds.format(**_GROUPS).split(", ")), bool(relative))
    for words, kinds, *relative in table(WORDS["modifiers"], "|")
)
RELATIVE = frozenset(word for row in MODIFIERS if row.relative for word in row.words)


@cache
def modifiers(noun: str) -> tuple[Modifier, ...]:
    """Returns the adjectives that can be said of a noun."""
    return tuple(row for row in MODIFIERS if any(noun in NOUNS.under(kind) for kind in row.kinds))


SYNONYMS = dict(table(WORDS["synonyms"]))
PLURALS = dict(table(WORDS["irregular_plurals"]))
#: past and participle
IRREGULAR = {base: forms for base, *forms in table(WORDS["irregular_verbs"])}
DOUBLED = frozenset(word for row in table(WORDS["doubled"]) for word in row)
