"""Verbs between people, and the wide rules on who does what to whom, and on nobody."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from benchmarks.release.wide_rules.drawing import activity, around, finish, somebody, two_people
from benchmarks.release.wide_rules.kinds import narrower, pick_or
from benchmarks.release.wide_rules.words import ACTIVITIES, PEOPLE, cells
from genpool.reproduction.rules import Case
from genpool.reproduction.scenes import Dice, Phrase, Scene, table

#: A does it to B, so B does not do it to A
ONE_WAY = cells(
    "carry, arrest, teach, feed, serve, rescue, interview, treat, coach, lift, hire, examine, "
    "train, bandage, chase, guard, drive home"
)
#: A does it to B, and B may do it to A
EITHER_WAY = cells(
    "thank, admire, call, visit, photograph, imitate, wave at, smile at, point at, "
    "recognize, shout at, tease, ignore"
)
#: A does it with B, so B does it with A
MUTUAL = cells(
    "dance with, argue with, play chess with, shake hands with, talk with, wrestle with, "
    "have dinner with, trade places with, fight with"
)


class Converse(NamedTuple):
    """ "A sells it to B" is "B buys it from A"; the third excludes both, or is empty."""

    one: str
    other: str
    neither: str


CONVERSES = [
    Converse(*row)
    for row in table(
        """
    be taller than        | be shorter than         | be as tall as
    be older than         | be younger than         | be as old as
    be stronger than      | be weaker than          | be as strong as
    be faster than        | be slower than          | be as fast as
    be richer than        | be poorer than          | be as rich as
    be behind             | be in front of          | be next to
    be to the left of     | be to the right of      |
    sit behind            | sit in front of         | sit next to
    sell {} to            | buy {} from             |
    give {} to            | receive {} from         |
    lend {} to            | borrow {} from          |
    throw {} to           | catch {} from           |
    win a race against    | lose a race to          |
    be the boss of        | be an employee of       |
    arrive before         | arrive after            | arrive together with
    """,
        "|",
    )
]
GOODS = cells("a car, a book, a bicycle, a ring, a ball, a guitar, a camera, a box, a hat")


_NEAR = ("look at", "point at", "talk about")


def swap(dice: Dice) -> Case:
    """Who is arrested does not arrest; who is thanked may thank; who dances with her, she with."""
    one, two = two_people(dice)
    verb = dice.pick(dice.pick((ONE_WAY, EITHER_WAY, MUTUAL)))
    scene = around(dice, Scene((one,), verb, two))
    swapped = replace(scene, subjects=(two,), object=one)
    denied = replace(scene, negated=True)
    near = replace(scene, verb=dice.pick(_NEAR))
    if verb in MUTUAL:
        return finish(dice, Case(scene, swapped, near, denied), ("subject",))
    swapped = replace(swapped, passive=dice.chance(0.5))
    said, same = scene, replace(scene, passive=True)
    if dice.chance(0.3):
        said, same = same, said
    if verb in EITHER_WAY:
        return finish(dice, Case(said, same, swapped, denied), ("subject",))
    unsaid = replace(scene, subjects=(), passive=True)
    less = near if dice.chance(0.5) else unsaid
    return finish(dice, Case(said, same, less, swapped), ("subject",))


def converse(dice: Dice) -> Case:
    """Who sells a car to the nurse has her as its buyer; who is taller than she is not shorter."""
    row = dice.pick(CONVERSES)
    goods = dice.pick(GOODS)
    said, back = (verb.format(goods) for verb in (row.one, row.other))
    if dice.chance(0.5):
        said, back = back, said
    one, two = two_people(dice)
    scene = Scene((one,), said, two, past=dice.chance(0.35))
    is_lasting = said.startswith("be ")  # nobody is taller at the market
    scene = scene if is_lasting else around(dice, scene)
    turned = replace(scene, subjects=(two,), object=one)
    third = somebody(dice, "the")
    if any(PEOPLE.related(third.noun, person.noun) for person in (one, two)):
        return Case(scene)
    near = replace(scene, verb=dice.pick(_NEAR))
    less = near if dice.chance(0.5) else replace(scene, object=third)
    verbs = (back, row.neither) if row.neither else (back,)
    against = dice.pick([turned, *(replace(scene, verb=verb) for verb in verbs)])
    case = Case(scene, replace(turned, verb=back), less, against)
    return finish(dice, case, ("subject", *(("place", "time") if is_lasting else ())))


def nobody(dice: Dice) -> Case:
    """If nobody swims, no man does; if no man does, a woman may; if a boy does, a child does."""
    return dice.pick((_somebody_does, _nobody_does, _he_does_not))(dice)


def _no(dice: Dice, scene: Scene, person: str) -> Scene:
    """Returns the scene without such a person: "no man swims", "there is no man swimming"."""
    if person == "nobody":
        return replace(scene, subjects=(Phrase("nobody", ""),))
    return replace(scene, subjects=(Phrase(f"no {person}", ""),), existential=dice.chance(0.5))


def _some(scene: Scene, person: str) -> Scene:
    return replace(scene, subjects=(Phrase(person),))


def _somebody_does(dice: Dice) -> Case:
    noun = dice.pick(PEOPLE.words)
    scene = activity(dice, Phrase(noun))
    more = _some(scene, pick_or(dice, narrower(PEOPLE, noun), noun))
    broad = PEOPLE.parent(noun)
    less = _some(scene, broad) if broad else replace(scene, place="") if scene.place else None
    against = _no(dice, scene, dice.pick([noun, broad or noun, "nobody"]))
    denied = replace(scene, negated=True)
    against = denied if dice.chance(0.3) else against
    return finish(dice, Case(scene, more, less, against), ("subject",))


def _nobody_does(dice: Dice) -> Case:
    noun = dice.pick(PEOPLE.words)
    scene = activity(dice, Phrase(noun))
    others = [*narrower(PEOPLE, noun), *PEOPLE.rivals(noun)]
    less = _no(dice, scene, dice.pick(others)) if others else None
    more = _no(dice, scene, dice.pick([PEOPLE.parent(noun) or "nobody", "nobody"]))
    against = _some(scene, dice.pick(PEOPLE.under(noun)))
    return finish(dice, Case(_no(dice, scene, noun), more, less, against), ("subject",))


def _he_does_not(dice: Dice) -> Case:
    scene = activity(dice, Phrase(noun := dice.pick(PEOPLE.words), "the"))
    hypothesis = replace(scene, negated=True)
    less = replace(hypothesis, verb=dice.pick([verb for verb in ACTIVITIES if verb != scene.verb]))
    more = _no(dice, scene, dice.pick((noun, "nobody")))
    return finish(dice, Case(hypothesis, more, less, scene), ("subject",))
