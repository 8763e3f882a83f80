"""The scenes of the generated corpus, of the words in words.toml: who does what to whom, where and
when. They are drawn, changed in one part, and rendered as English.
"""

from __future__ import annotations

import itertools
import random
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple, TypeVar

T = TypeVar("T")
Way = Literal["narrower", "broader", "opposed"]
EXTRAS = ("subject modifier", "object modifier", "place", "time")
PARTS = ("subject", "object", "action", *EXTRAS)


class Dice:
    """Random choices from `Random.random()` alone, which Python promises never to change."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(str(seed))  # as text: Random(-1) and Random(1) are the same

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """Returns one of the options, each with the same probability."""
        return options[int(self._random.random() * len(options))]


def table(text: str, separator: str = ", ") -> list[list[str]]:
    """Returns the columns of each row; rows end with a line or a semicolon."""
    lines = filter(str.strip, text.replace(";", "\n").splitlines())
    return [[column.strip() for column in line.split(separator)] for line in lines]


class Tree:
    """A taxonomy, read from lines of the form "broad word: narrower word, narrower word"."""

    def __init__(self, text: str) -> None:
        self._children = {word: narrower.split(", ") for word, narrower in table(text, ": ")}
        self._parent = {child: word for word, row in self._children.items() for child in row}
        roots = [word for word in self._children if word not in self._parent]
        self.words = [word for root in roots for word in self.under(root)]

    def parent(self, word: str) -> str:
        """Returns the next broader word, or "" if there is none that can be said."""
        parent = self._parent.get(word, "")
        return "" if parent.startswith("[") else parent

    def children(self, word: str) -> list[str]:
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

    def related(self, word: str, *others: str) -> bool:
        """Returns whether the word is a kind of one of the others, or the reverse."""
        return any(word in self.under(other) or other in self.under(word) for other in others)

    def common(self, word: str, other: str) -> str:
        """Returns the narrowest word for both, or "" if there is none that can be said."""
        while word and other not in self.under(word):
            word = self.parent(word)
        return word

    def steps(self, word: str, way: Way, optional: bool = False) -> list[str]:
        """Returns the words one step away; an optional word can also be added or dropped."""
        if way == "broader":
            parent = self.parent(word)
            return ([parent] if parent else []) + ([""] if optional and word else [])
        if way == "narrower":
            return self.words if optional and not word else self.children(word)
        return self.rivals(word)


class Frame(NamedTuple):
    """Who does it, to what (nothing for "sleep"), and where that makes sense."""

    agents: tuple[str, ...]
    objects: tuple[str, ...]
    places: tuple[str, ...]


class Modifier(NamedTuple):
    """Adjectives that exclude each other, and what they are said of, in the order of English."""

    words: tuple[str, ...]
    kinds: tuple[str, ...]
    relative: bool  # a small horse is not a small animal


WORDS = tomllib.loads(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))
NOUNS, PLACES, TIMES, VERBS = (Tree(WORDS[name]) for name in ("nouns", "places", "times", "verbs"))
#: verbs in one row cannot be done at once by the same one (to the same thing)
EXCLUSIVE = table(WORDS["exclusive"])
FRAMES = {
    verb: Frame(*(() if cell == "-" else tuple(cell.split(", ")) for cell in cells))
    for verb, *cells in table(WORDS["frames"], "|")
}
_GROUPS = dict(table(WORDS["groups"], ": "))
MODIFIERS = tuple(
    Modifier(tuple(words.split(", ")), tuple(kinds.format(**_GROUPS).split(", ")), bool(relative))
    for words, kinds, *relative in table(WORDS["modifiers"], "|")
)
_RELATIVE = frozenset(word for row in MODIFIERS if row.relative for word in row.words)
SYNONYMS = dict(table(WORDS["synonyms"]))
_PLURALS = dict(table(WORDS["irregular_plurals"]))
#: past and participle
_IRREGULAR = {base: forms for base, *forms in table(WORDS["irregular_verbs"])}
_DOUBLED = frozenset(itertools.chain(*table(WORDS["doubled"])))
#: determiners of one thing; none is for words such as "nobody"
_SINGULAR = ("a", "the", "another", "only a", "1", "")
#: vowels that are spoken as consonants
_NOT_VOWELS = ("eu", "uni", "use", "one")


def frame_of(verb: str) -> Frame:
    return FRAMES[verb if verb in FRAMES else VERBS.parent(verb)]


@cache
def modifiers(noun: str) -> tuple[Modifier, ...]:
    """Returns the adjectives that can be said of a noun."""
    return tuple(row for row in MODIFIERS if any(noun in NOUNS.under(kind) for kind in row.kinds))


@dataclass(frozen=True)
class Phrase:
    """ "a small dog", "the dog", "at least two dogs", "a dog with a ball"."""

    noun: str
    determiner: str = "a"
    adjectives: tuple[str, ...] = ()
    after: str = ""

    @property
    def is_plural(self) -> bool:
        """Whether the determiner needs a plural."""
        return self.determiner not in _SINGULAR and not self.determiner.endswith("one")


@dataclass(frozen=True)
class Scene:
    """Who does what to whom, where and when, in words of the lexicon or their synonyms."""

    subjects: tuple[Phrase, ...]  # none: "the dog is being chased"
    verb: str
    object: Phrase | None = None
    place: str = ""
    time: str = ""
    link: str = "and"  # between subjects: and, or, nor
    past: bool = False
    passive: bool = False
    negated: bool = False
    reworded: bool = False
    existential: bool = False  # "there is a dog running"

    @property
    def phrases(self) -> tuple[Phrase, ...]:
        """The subjects, and the object if there is one."""
        return (*self.subjects, self.object) if self.object else self.subjects


def plural(noun: str) -> str:
    head, of, rest = noun.partition(" of ")
    if head in _PLURALS:
        return _PLURALS[head]
    if head.endswith("man"):
        return head[:-3] + "men"
    if head.endswith("y") and head[-2] not in "aeiou":
        return head[:-1] + "ies"
    ending = "es" if head.endswith(("s", "x", "ch", "sh", "potato")) else "s"
    return head + ending + of + rest


def conjugate(verb: str) -> tuple[str, str, str]:
    """Returns past, participle and -ing form; only the first word changes ("looked at")."""
    head, space, rest = verb.partition(" ")
    tail = space + rest
    stem = head + head[-1] if head in _DOUBLED else head
    regular = head[:-1] + "ied" if head.endswith("y") and head[-2] not in "aeiou" else stem + "ed"
    regular = head + "d" if head.endswith("e") else regular
    past, participle = _IRREGULAR.get(head, [regular, regular])
    ing = (head[:-1] if head.endswith("e") else stem) + "ing"
    ing = head[:-2] + "ying" if head.endswith("ie") else ing
    return past + tail, participle + tail, ing + tail


def takes_an(words: str) -> bool:
    """Returns whether the article before these words is "an"."""
    lowered = words.lower()
    return lowered[0] in "aeiou" and not lowered.startswith(_NOT_VOWELS)


def render(scene: Scene) -> str:
    """Returns the scene as an English sentence."""

    def say(word: str) -> str:
        return SYNONYMS.get(word, word) if scene.reworded else word

    def phrase(part: Phrase) -> str:
        noun = plural(say(part.noun)) if part.is_plural else say(part.noun)
        words = " ".join([*map(say, part.adjectives), noun])
        is_an = part.determiner in ("a", "only a") and takes_an(words)
        determiner = part.determiner + ("n" if is_an else "")
        return " ".join(filter(None, [determiner, words, part.after]))

    *others, agents = [phrase(part) for part in scene.subjects] or [""]
    if others:
        opening = {"and": "", "or": "either ", "nor": "neither "}[scene.link]
        agents = f"{opening}{', '.join(others)} {scene.link} {agents}"
    thing = phrase(scene.object) if scene.object else ""
    if scene.passive:
        first, last = thing, f"by {agents}" if agents else ""
        many = scene.object is not None and scene.object.is_plural
    else:
        first, last = agents, thing
        many = scene.subjects[-1].is_plural or (len(scene.subjects) > 1 and scene.link == "and")
    be = ("were" if many else "was") if scene.past else "are" if many else "is"
    if scene.existential:
        first, action = f"there {be} {agents}", conjugate(say(scene.verb))[2]
    else:
        action = _inflect(scene, say(scene.verb), be)
    text = " ".join(filter(None, [first, action, last, say(scene.place), say(scene.time)]))
    return text[0].upper() + text[1:] + "."


def _inflect(scene: Scene, verb: str, be: str) -> str:
    past, participle, ing = conjugate(verb)
    negation = " not" if scene.negated else ""
    if verb.startswith("be "):
        return f"{be}{negation} {verb.removeprefix('be ')}"
    if scene.past and not scene.passive:
        return f"did not {verb}" if scene.negated else past
    action = participle if scene.past else f"being {participle}" if scene.passive else ing
    return f"{be}{negation} {action}"


def draw(dice: Dice, article: str = "a", verbs: Sequence[str] = tuple(FRAMES)) -> Scene:
    """Returns a sensible scene with one of these verbs."""
    while True:
        frame = FRAMES[verb := dice.pick(verbs)]
        scene = Scene(
            subjects=(draw_phrase(dice, article, frame.agents),),
            verb=dice.pick(VERBS.under(verb)),
            object=draw_phrase(dice, article, frame.objects) if frame.objects else None,
            past=dice.chance(0.4),
        )
        if frame.places and dice.chance(0.5):
            scene = replace(scene, place=dice.pick(PLACES.under(dice.pick(frame.places))))
        if dice.chance(0.3):
            days = scene.past and dice.chance(0.5)
            scene = replace(scene, time=dice.pick(TIMES.under("[days]" if days else "[hours]")))
        if sensible(scene):
            return scene


def draw_phrase(dice: Dice, article: str, kinds: Sequence[str]) -> Phrase:
    """Returns a noun of one of these kinds, perhaps with adjectives."""
    noun = dice.pick(NOUNS.under(dice.pick(kinds)))
    if dice.chance(0.25):  # broad words are few in the tree, but half of the phenomena need them
        noun = NOUNS.parent(noun) or noun
    rows = modifiers(noun)
    adjectives = [dice.pick(row.words) for row in rows if dice.chance(0.6 / len(rows))]
    return Phrase(noun, article, tuple(adjectives))


def sensible(scene: Scene) -> bool:
    """Returns whether its words go together; every change of a scene must pass."""
    frame = frame_of(scene.verb)
    nouns = [phrase.noun for phrase in scene.phrases]
    return (
        all(NOUNS.related(subject.noun, *frame.agents) for subject in scene.subjects)
        and (scene.object is None) == (not frame.objects)
        and (not scene.object or NOUNS.related(scene.object.noun, *frame.objects))
        and (not scene.place or PLACES.related(scene.place, *frame.places))
        and (scene.past or scene.time not in TIMES.under("[days]"))
        and not any(NOUNS.related(*two) for two in itertools.combinations(nouns, 2))
        and all(_adjectives(phrase.noun).issuperset(phrase.adjectives) for phrase in scene.phrases)
        and all(len(phrase.adjectives) < 3 for phrase in scene.phrases)
    )


@cache
def _adjectives(noun: str) -> frozenset[str]:
    return frozenset(word for row in modifiers(noun) for word in row.words)


def change(dice: Dice, scene: Scene, way: Way, *parts: str) -> Scene | None:
    """Returns the scene with one part narrower, broader or incompatible; None if none can be.

    A narrower scene entails this one, which entails a broader one; an opposed one excludes it.
    """
    untried = list(parts)
    while untried:
        part = dice.pick(untried)
        if options := [new for new in _changed(scene, way, part) if sensible(new)]:
            return dice.pick(options)
        untried.remove(part)
    return None


def _changed(scene: Scene, way: Way, part: str) -> list[Scene]:
    """Returns every scene that differs from this one in one part, sensible or not."""
    match part:
        case "action":
            return [replace(scene, verb=verb) for verb in _other_verbs(scene.verb, way)]
        case "place":
            return [replace(scene, place=at) for at in PLACES.steps(scene.place, way, True)]
        case "time":
            return [replace(scene, time=time) for time in TIMES.steps(scene.time, way, True)]
    who, _, modifier = part.partition(" ")
    others = _other_adjectives if modifier else _other_nouns
    if who == "object":
        things = others(scene.object, way) if scene.object else []
        return [replace(scene, object=thing) for thing in things]
    return [
        replace(scene, subjects=(*scene.subjects[:at], new, *scene.subjects[at + 1 :]))
        for at, old in enumerate(scene.subjects)
        for new in others(old, way)
    ]


def _other_verbs(verb: str, way: Way) -> list[str]:
    if way != "opposed":
        return VERBS.steps(verb, way)
    same = {verb, VERBS.parent(verb)}
    rivals = [rival for group in EXCLUSIVE if same & {*group} for rival in group]
    return [rival for rival in rivals if rival not in same]


def _other_nouns(phrase: Phrase, way: Way) -> list[Phrase]:
    if way != "opposed" and not _RELATIVE.isdisjoint(phrase.adjectives):
        return []  # a small horse is a horse, but not a small animal
    return [replace(phrase, noun=noun) for noun in NOUNS.steps(phrase.noun, way)]


def _other_adjectives(phrase: Phrase, way: Way) -> list[Phrase]:
    rows = modifiers(phrase.noun)
    choices: list[list[str]] = []
    for row in rows:
        said = [word for word in phrase.adjectives if word in row.words]
        rest = [word for word in phrase.adjectives if word not in row.words]
        if way == "broader" and said:
            choices.append(rest)
        elif (way == "opposed" and said) or (way == "narrower" and not said):
            choices += [[*rest, word] for word in row.words if word not in said]
    order = [word for row in rows for word in row.words]
    return [replace(phrase, adjectives=tuple(sorted(new, key=order.index))) for new in choices]
