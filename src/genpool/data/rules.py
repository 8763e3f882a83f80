"""A corpus of sentence pairs made by rules: entailment, neutral, contradiction, any size.

Like the captions of SNLI, the two sentences of a pair tell of the same scene: a premise with a dog
contradicts a hypothesis with a cat, and "two men" are two and no more. A rule never makes one
pair: it makes one hypothesis and three premises, one for each label. So the hypothesis alone says
nothing about the label; only both sentences together do.

Swapped roles are a contradiction where the verb goes one way (who leads is not led) and neutral
where it may go both ways (who greets may be greeted).

The grammar has more than forty million distinct pairs, so two seeds hardly share any. (Of 150,000
pairs of seed 9, 265 couples were equal: as often as in a uniform draw from 42 million. Short
sentences are drawn more often than long ones, so there are more than that.)
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, TypeVar

from genpool.data import lexicon
from genpool.data.lexicon import FRAMES, NOUNS, PLACES, TIMES, VERBS, Phrase, Scene, Tree, render
from genpool.errors import InputError

T = TypeVar("T")
LABELS = ("entailment", "neutral", "contradiction")


class Pair(NamedTuple):
    label: str
    premise: str
    hypothesis: str
    rule: str


class Dice:
    """Chance from `Random.random()` alone, the one method that Python promises never to change."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(str(seed))  # as text: Random(-1) and Random(1) are the same

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self._random.random() * len(options))]


# --- Scenes at random ----------------------------------------------------------------------------


def draw(dice: Dice, article: str = "a", verbs: Sequence[str] = tuple(FRAMES)) -> Scene:
    """A sensible scene with one of these verbs."""
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
    noun = dice.pick(NOUNS.under(dice.pick(kinds)))
    if dice.chance(0.25):  # broad words are few in the tree, but half of the phenomena need them
        noun = NOUNS.parent(noun) or noun
    rows = lexicon.modifiers(noun)
    adjectives = [dice.pick(row.words) for row in rows if dice.chance(0.6 / len(rows))]
    return Phrase(noun, article, tuple(adjectives))


def sensible(scene: Scene) -> bool:
    """Whether its words go together; every change of a scene has to pass."""
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
    """The scene with one of these parts made narrower, broader or incompatible; None if none can.

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
    """The words one step away in a tree; an optional word can also be added and dropped."""
    if way == "broader":
        parent = tree.parent(word)
        return ([parent] if parent else []) + ([""] if optional and word else [])
    if way == "narrower":
        return tree.words if optional and not word else tree.children(word)
    return tree.rivals(word)


def _other_verbs(verb: str, way: Way) -> list[str]:
    if way != "opposed":
        return _steps(VERBS, verb, way)
    own = {verb, VERBS.parent(verb)}
    rivals = [rival for group in lexicon.EXCLUSIVE if own & {*group} for rival in group]
    return [rival for rival in rivals if rival not in own]


def _other_nouns(phrase: Phrase, way: Way) -> list[Phrase]:
    if way != "opposed" and not lexicon.RELATIVE.isdisjoint(phrase.adjectives):
        return []  # a small horse is a horse, but not a small animal
    return [replace(phrase, noun=noun) for noun in _steps(NOUNS, phrase.noun, way)]


def _other_adjectives(phrase: Phrase, way: Way) -> list[Phrase]:
    rows = lexicon.modifiers(phrase.noun)
    found: list[list[str]] = []
    for row in rows:
        said = [word for word in phrase.adjectives if word in row.words]
        rest = [word for word in phrase.adjectives if word not in row.words]
        if way == "broader" and said:
            found.append(rest)
        elif (way == "opposed" and said) or (way == "narrower" and not said):
            found += [[*rest, word] for word in row.words if word not in said]
    order = [word for row in rows for word in row.words]
    return [replace(phrase, adjectives=tuple(sorted(new, key=order.index))) for new in found]


def _changed(scene: Scene, way: Way, part: str) -> list[Scene]:
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


# --- The rules: one hypothesis, and a premise for each label -------------------------------------


class Case(NamedTuple):
    """Where a premise is None, nothing fits the hypothesis, and the rule is asked again."""

    hypothesis: Scene
    entailment: Scene | None = None
    neutral: Scene | None = None
    contradiction: Scene | None = None


Rule = Callable[[Dice], Case]


def _along(dice: Dice, scene: Scene, *parts: str) -> Case:
    """The narrower premise entails, the broader one leaves open, the opposed one contradicts."""
    return Case(
        scene,
        change(dice, scene, "narrower", *parts) or change(dice, scene, "narrower", *EXTRAS),
        change(dice, scene, "broader", *parts) or change(dice, scene, "broader", *EXTRAS),
        change(dice, scene, "opposed", *parts),
    )


def hypernym(dice: Dice) -> Case:
    """A dog is an animal, an animal may be a dog, and a cat is none."""
    return _along(dice, draw(dice), "subject", "object")


def modifier(dice: Dice) -> Case:
    """A small dog is a dog, a dog may be small, and a big one is not."""
    return _along(dice, draw(dice), "subject modifier", "object modifier")


def place(dice: Dice) -> Case:
    """In the park is outside, outside may be the park, and the kitchen is neither."""
    return _along(dice, draw(dice, dice.pick(("a", "the"))), "place")


def time(dice: Dice) -> Case:
    """At midnight is at night, at night may be midnight, and in the morning is not."""
    return _along(dice, draw(dice, dice.pick(("a", "the"))), "time")


def action(dice: Dice) -> Case:
    """Who sprints runs, who runs may sprint, and who sits does neither."""
    return _along(dice, draw(dice, dice.pick(("a", "the"))), "action")


def negation(dice: Dice) -> Case:
    """ "Not" turns entailment round: no fruit means no apple, and no apple leaves fruit open."""
    scene = draw(dice, "the")
    if scene.object:
        scene = replace(scene, object=replace(scene.object, determiner="a"))
    kinds, parts = ("object", "action"), ("object", "action", "place", "time")
    more = change(dice, scene, "narrower", *kinds) or change(dice, scene, "narrower", *parts)
    less = change(dice, scene, "broader", *parts)
    other = change(dice, scene, "opposed", "action")
    # Not of places and times: "not reading in the park" can be heard as "reading elsewhere".
    doubt = _not(change(dice, scene, dice.pick(("narrower", "opposed")), *kinds))
    if dice.chance(0.5):
        return Case(scene, more, doubt, _not(less if less and dice.chance(0.4) else scene))
    excluding = other if other and dice.chance(0.6) else _not(less)
    return Case(replace(scene, negated=True), excluding, doubt, dice.pick([scene, more]))


def _not(scene: Scene | None) -> Scene | None:
    return scene and replace(scene, negated=True)


def passive(dice: Dice) -> Case:
    """What the dog chases is chased by the dog; what is chased may be chased by another."""
    scene = replace(draw(dice, "the", lexicon.TRANSITIVE), passive=dice.chance(0.5))
    turned = replace(scene, passive=not scene.passive)
    unsaid = replace(scene, subjects=(), passive=True)
    return Case(scene, turned, unsaid, change(dice, turned, "opposed", "subject", "action"))


def roles(dice: Dice) -> Case:
    """Who leads the dog is not led by it; who greets the man may be greeted by him."""
    scene = draw(dice, "the", lexicon.ONE_WAY + lexicon.EITHER_WAY)
    swapped = replace(scene, subjects=scene.phrases[1:], object=scene.subjects[0])
    if not sensible(swapped):
        return Case(scene)
    swapped = replace(swapped, passive=dice.chance(0.5))
    same = dice.pick([replace(scene, passive=True), change(dice, scene, "narrower", *EXTRAS)])
    if scene.verb in lexicon.ONE_WAY:
        return Case(scene, same, replace(scene, subjects=(), passive=True), swapped)
    return Case(scene, same, swapped, _not(scene))


def synonym(dice: Dice) -> Case:
    """Other words for the same change nothing."""
    scene = replace(draw(dice), reworded=dice.chance(0.5))
    same = replace(scene, reworded=not scene.reworded)
    if render(same) == render(scene):
        return Case(scene)
    less, other = (change(dice, same, way, *PARTS) for way in ("broader", "opposed"))
    return Case(scene, same, less, other)


def conjunction(dice: Dice) -> Case:
    """A man and a woman sing: a woman does. A man or a woman sings: who knows."""
    scene = draw(dice, verbs=lexicon.TOGETHER)
    agents = lexicon.frame_of(scene.verb).agents
    one, two, three = scene.subjects[0], *(draw_phrase(dice, "a", agents) for _ in range(2))

    def said_of(*subjects: Phrase, link: str = "and") -> Scene:
        return replace(scene, subjects=subjects, link=link)

    broad = NOUNS.common(one.noun, two.noun)
    if not broad or not sensible(said_of(one, two, three)):
        return Case(scene)
    doubt = dice.pick([said_of(one, two, link="or"), said_of(two, Phrase(broad, "another"))])
    denials = [said_of(one, two, link="nor"), said_of(two, three)]
    if dice.chance(0.5):
        more = dice.pick([said_of(one, two), said_of(two, one)])
        return Case(scene, more, doubt, dice.pick(denials))
    more = dice.pick([said_of(two, one), said_of(one, two, three)])
    only_one = said_of(replace(one, determiner="only a"))
    return Case(said_of(one, two), more, doubt, dice.pick([*denials, only_one]))


def number(dice: Dice) -> Case:
    """Three dogs are at least two, at least two may be three, and at most two are not."""
    of_object = dice.chance(0.4)
    scene = draw(dice, verbs=lexicon.COUNTED if of_object else lexicon.TOGETHER)

    def count(words: str) -> Scene:
        if of_object:
            return replace(scene, object=replace(scene.phrases[1], determiner=words))
        return replace(scene, subjects=(replace(scene.subjects[0], determiner=words),))

    # In a hypothesis, "two dogs" could also mean "at least two".
    said = dice.pick([row for row in lexicon.QUANTIFIERS if row.words not in lexicon.NUMBERS])
    others = [row for row in lexicon.QUANTIFIERS if row != said]
    inside = [row for row in others if said.least <= row.least and row.most <= said.most]
    outside = [row for row in others if row.most < said.least or said.most < row.least]
    across = [row for row in others if row not in inside and row not in outside]
    if not (inside and outside and across):
        return Case(scene)
    premises = (count(dice.pick(rows).words) for rows in (inside, across, outside))
    return Case(count(said.words), *premises)


# A new rule is one function and one line here.
RULES: dict[str, Rule] = {
    "hypernym": hypernym,
    "modifier": modifier,
    "place": place,
    "time": time,
    "action": action,
    "negation": negation,
    "passive": passive,
    "roles": roles,
    "synonym": synonym,
    "conjunction": conjunction,
    "number": number,
}


# --- The corpus ----------------------------------------------------------------------------------


def generate(size: int, seed: int = 0) -> Iterator[Pair]:
    """Pairs with balanced labels, made one by one; a seed gives the same pairs everywhere."""
    return itertools.islice(_pairs(Dice(seed)), _checked(size))


def sentences(size: int, seed: int = 0) -> Iterator[str]:
    """Single sentences of the same grammar."""
    dice = Dice(seed)
    either = (dice.pick((pair.premise, pair.hypothesis)) for pair in _pairs(dice))
    return itertools.islice(either, _checked(size))


def _checked(size: int) -> int:
    if size < 0:
        raise InputError(f"size is {size}: give the number of lines to make, 0 or more")
    return size


def _pairs(dice: Dice) -> Iterator[Pair]:
    while True:
        for label in dice.pick(list(itertools.permutations(LABELS))):
            name = dice.pick(list(RULES))
            hypothesis, premises = ask(RULES[name], dice)
            premise = _disguise(dice, label, premises[label], hypothesis)
            yield Pair(label, render(premise), render(hypothesis), name)


def ask(rule: Rule, dice: Dice) -> tuple[Scene, dict[str, Scene]]:
    """A hypothesis of a rule and the premise for each label."""
    while True:
        hypothesis, *premises = rule(dice)
        found = {label: scene for label, scene in zip(LABELS, premises, strict=True) if scene}
        if len(found) == len(LABELS):
            return hypothesis, found


def _disguise(dice: Dice, label: str, premise: Scene, hypothesis: Scene) -> Scene:
    """Changes what the label does not hang on, so that lengths and shared words say little."""
    if not (premise.is_plain and hypothesis.is_plain):
        return premise
    if label != "entailment" and dice.chance(0.4):
        if premise.place and premise.place == hypothesis.place:
            premise = replace(premise, place="")
        elif premise.time == hypothesis.time:
            premise = replace(premise, time="")
    # What the hypothesis does not speak of cannot contradict it.
    free = [part for part in ("place", "time") if not getattr(hypothesis, part)]
    if not any(phrase.adjectives for phrase in hypothesis.phrases):
        free += ["subject modifier", "object modifier"]
    if dice.chance(0.5):
        premise = change(dice, premise, "narrower", *free) or premise
    if dice.chance(0.3) and not hypothesis.reworded:
        premise = replace(premise, reworded=True)
    if dice.chance(0.2) and premise.object and premise.subjects:
        # Where the rule has changed the voice already, turning it back would undo it.
        premise = replace(premise, passive=not hypothesis.passive)
    return premise
