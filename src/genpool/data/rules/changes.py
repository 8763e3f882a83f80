"""Random scenes, and small changes of a scene: broader, narrower, excluded."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from genpool.data.rules import lexicon
from genpool.data.rules.lexicon import FRAMES, NOUNS, PLACES, TIMES, VERBS, Tree
from genpool.data.rules.scenes import Phrase, Scene

T = TypeVar("T")


class Dice:
    """Random choices from `Random.random()` alone, which Python promises never to change."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(str(seed))  # as text: Random(-1) and Random(1) are the same

    def chance(self, probability: float) -> bool:
        """Returns True with this probability."""
        return self._random.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """Returns one of the options, each with the same probability."""
        return options[int(self._random.random() * len(options))]


# --- Random scenes -------------------------------------------------------------------------------


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
    rows = lexicon.modifiers(noun)
    adjectives = [dice.pick(row.words) for row in rows if dice.chance(0.6 / len(rows))]
    return Phrase(noun, article, tuple(adjectives))


def sensible(scene: Scene) -> bool:
    """Returns whether its words go together; every change of a scene must pass."""
    frame = lexicon.frame_of(scene.verb)
    nouns = [phrase.noun for phrase in scene.phrases]
    return (
        all(NOUNS.fits(subject.noun, frame.agents) for subject in scene.subjects)
        and (NOUNS.fits(scene.object.noun, frame.objects) if scene.object else not frame.objects)
        and (not scene.place or PLACES.fits(scene.place, frame.places))
        and (scene.past or scene.time not in TIMES.under("[days]"))
        and not any(NOUNS.related(*two) for two in itertools.combinations(nouns, 2))
        and all(phrase.is_sensible for phrase in scene.phrases)
    )


# --- Changes of a scene --------------------------------------------------------------------------

Way = Literal["narrower", "broader", "opposed"]
EXTRAS = ("subject modifier", "object modifier", "place", "time")
PARTS = ("subject", "object", "action", *EXTRAS)


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


def _steps(tree: Tree, word: str, way: Way, optional: bool = False) -> list[str]:
    """Returns the words one step away in a tree; an optional word can also be added or dropped."""
    if way == "broader":
        parent = tree.parent(word)
        return ([parent] if parent else []) + ([""] if optional and word else [])
    if way == "narrower":
        return tree.words if optional and not word else tree.children(word)
    return tree.rivals(word)


def _other_verbs(verb: str, way: Way) -> list[str]:
    if way != "opposed":
        return _steps(VERBS, verb, way)
    same = {verb, VERBS.parent(verb)}
    rivals = [rival for group in lexicon.EXCLUSIVE if same & {*group} for rival in group]
    return [rival for rival in rivals if rival not in same]


def _other_nouns(phrase: Phrase, way: Way) -> list[Phrase]:
    if way != "opposed" and not lexicon.RELATIVE.isdisjoint(phrase.adjectives):
        return []  # a small horse is a horse, but not a small animal
    return [replace(phrase, noun=noun) for noun in _steps(NOUNS, phrase.noun, way)]


def _other_adjectives(phrase: Phrase, way: Way) -> list[Phrase]:
    rows = lexicon.modifiers(phrase.noun)
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


def _changed(scene: Scene, way: Way, part: str) -> list[Scene]:
    """Returns every scene that differs from this one in one part, sensible or not."""
    match part:
        case "action":
            return [replace(scene, verb=verb) for verb in _other_verbs(scene.verb, way)]
        case "place":
            return [replace(scene, place=place) for place in _steps(PLACES, scene.place, way, True)]
        case "time":
            return [replace(scene, time=time) for time in _steps(TIMES, scene.time, way, True)]
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
