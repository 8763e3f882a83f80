"""Random scenes of the wide rules, and details that a label does not depend on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from benchmarks.release.wide_rules.words import (
    ACTIVITIES,
    BELONGINGS,
    NUMBERS,
    PEOPLE,
    PLACES,
    TIMES,
    TRAITS,
    WORKERS,
)
from genpool.reproduction.rules import Case
from genpool.reproduction.scenes import Dice, Phrase, Scene, render

PERSONS = (*PEOPLE.words, *WORKERS)
#: determiners of a scene that entails what remains of it when a detail is dropped
PLAIN = frozenset({"a", "the", *NUMBERS.values(), *map(str, NUMBERS)})


def somebody(dice: Dice, article: str = "a") -> Phrase:
    """Returns a person: "a woman", "the teacher"."""
    return Phrase(dice.pick(PEOPLE.words if dice.chance(0.6) else WORKERS), article)


def two_people(dice: Dice) -> tuple[Phrase, Phrase]:
    """Returns two persons of different nouns, both with "the"."""
    first, second = somebody(dice, "the"), somebody(dice, "the")
    while PEOPLE.related(first.noun, second.noun):
        second = somebody(dice, "the")
    return first, second


def article(dice: Dice) -> str:
    """Returns "a" or "the"."""
    return dice.pick(("a", "the"))


def around(dice: Dice, scene: Scene) -> Scene:
    """Returns the scene now or in the past, perhaps with a place and a time."""
    return replace(
        scene,
        past=dice.chance(0.35),
        place=scene.place or (dice.pick(PLACES) if dice.chance(0.3) else ""),
        time=scene.time or (dice.pick(TIMES) if dice.chance(0.2) else ""),
    )


def activity(dice: Dice, subject: Phrase) -> Scene:
    """Returns a scene in which somebody does something."""
    return around(dice, Scene((subject,), dice.pick(ACTIVITIES)))


def finish(dice: Dice, case: Case, fixed: Collection[str] = ()) -> Case:
    """Returns a case with details in its premises, or an incomplete case if two texts are equal.

    Args:
        dice: the random choices.
        case: one hypothesis and its premises.
        fixed: the parts that the rule is about, which get no details: "place", "time", "subject".
    """
    hypothesis, *premises = case
    entailing, *others = (
        premise and _with_details(dice, premise, hypothesis, fixed) for premise in premises
    )
    others = [other and _without_shared(dice, other, hypothesis, fixed) for other in others]
    finished = Case(hypothesis, entailing, *others)
    texts = {render(scene) for scene in finished if scene}
    return finished if len(texts) == len(finished) else Case(hypothesis)


def _is_plain(scene: Scene) -> bool:
    return not scene.negated and all(phrase.determiner in PLAIN for phrase in scene.phrases)


def _without_shared(dice: Dice, premise: Scene, hypothesis: Scene, fixed: Collection[str]) -> Scene:
    """Drops a place or time of both sentences, where nothing follows from the premise anyway."""
    if not _is_plain(premise) or not _is_plain(hypothesis) or not dice.chance(0.4):
        return premise
    for part in ("place", "time"):
        value = getattr(premise, part)
        if value and part not in fixed and value == getattr(hypothesis, part):
            return replace(premise, place="") if part == "place" else replace(premise, time="")
    return premise


def _with_details(dice: Dice, premise: Scene, hypothesis: Scene, fixed: Collection[str]) -> Scene:
    """Adds what the hypothesis does not mention, so that it cannot contradict it."""
    if not _is_plain(premise):
        return premise
    if not (premise.place or hypothesis.place or "place" in fixed) and dice.chance(0.35):
        premise = replace(premise, place=dice.pick(PLACES))
    if not (premise.time or hypothesis.time or "time" in fixed) and dice.chance(0.25):
        premise = replace(premise, time=dice.pick(TIMES))
    if not premise.subjects or premise.passive:
        return premise
    subject, *more = premise.subjects
    said = any(phrase.adjectives or phrase.after for phrase in (subject, *hypothesis.subjects))
    if subject.noun in PERSONS and not (said or more or "subject" in fixed):
        if dice.chance(0.25):
            subject = replace(subject, adjectives=(dice.pick(TRAITS),))
        elif dice.chance(0.25):
            subject = replace(subject, after=dice.pick(BELONGINGS))
        premise = replace(premise, subjects=(subject,))
    indefinite = subject.determiner != "the" and not more
    if indefinite and not premise.verb.startswith("be ") and dice.chance(0.12):
        premise = replace(premise, existential=True)
    return premise
