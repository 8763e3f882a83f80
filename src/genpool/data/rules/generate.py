"""A corpus of sentence pairs made by rules: entailment, neutral, contradiction, any size.

Like the captions of SNLI, the two sentences of a pair tell of the same scene: a premise with a dog
contradicts a hypothesis with a cat, and "two men" are two and no more. A rule never makes one
pair: it makes one hypothesis and three premises, one for each label. So the hypothesis alone says
nothing about the label; only both sentences together do.

Swapped roles are a contradiction where the verb goes one way (who leads is not led) and neutral
where it may go both ways (who greets may be greeted).

The grammar has more than forty million distinct pairs, so two seeds hardly share any. (Of 150,000
pairs of seed 9, 247 couples were equal: as often as in a uniform draw from 45 million. Short
sentences are drawn more often than long ones, so there are more than that.)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from genpool.data.rules import lexicon
from genpool.data.rules.changes import EXTRAS, PARTS, Dice, change, draw, draw_phrase, sensible
from genpool.data.rules.scenes import Phrase, Scene, render
from genpool.errors import InputError

LABELS = ("entailment", "neutral", "contradiction")


class Pair(NamedTuple):
    label: str
    premise: str
    hypothesis: str
    rule: str


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

    broad = lexicon.NOUNS.common(one.noun, two.noun)
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
