"""Wide rules on cities, countries and continents, and on the people who are from there."""

from __future__ import annotations

from dataclasses import replace

from genpool.data.rules.cases import Case
from genpool.data.rules.changes import Dice
from genpool.data.rules.scenes import Scene
from genpool.data.rules.wide.drawing import activity, article, finish, somebody
from genpool.data.rules.wide.kinds import broader, narrower, pick_or
from genpool.data.rules.wide.nations import ADJECTIVES, WORLD


def _elsewhere(dice: Dice, name: str) -> str:
    """Returns a place that excludes this one; half of the time, one of the same size."""
    near = WORLD.rivals(name)
    far = [other for other in WORLD.words if not WORLD.related(name, other)]
    return dice.pick(near if dice.chance(0.5) else far)


def country(dice: Dice) -> Case:
    """Who is in Paris is in France, who is in France may be in Paris; who is in Japan is not."""
    name = dice.pick(WORLD.words)
    if dice.chance(0.4):
        name = WORLD.parent(name) or name
    scene = replace(activity(dice, somebody(dice, article(dice))), place="")

    def at(place: str) -> Scene:
        return replace(scene, place=place and f"in {place}")

    less = at(dice.pick([*broader(WORLD, name), ""]))
    if name in ADJECTIVES and dice.chance(0.3):  # a French man can be anywhere
        (subject,) = scene.subjects
        less = replace(scene, subjects=(replace(subject, adjectives=(ADJECTIVES[name],)),))
    more, other = pick_or(dice, narrower(WORLD, name), name), _elsewhere(dice, name)
    return finish(dice, Case(at(name), at(more), less, at(other)), ("place",))


def nationality(dice: Dice) -> Case:
    """A French woman is European and from France; she is not Japanese."""
    name = dice.pick(list(ADJECTIVES) if dice.chance(0.7) else WORLD.words)
    subject = somebody(dice, article(dice))
    scene = activity(dice, subject)
    is_stated = dice.chance(0.3)
    if is_stated:  # "the singer is French", at any place and time
        scene = Scene((replace(subject, determiner="the"),), "be here", past=scene.past)

    def of(place: str) -> Scene:
        adjective = ADJECTIVES.get(place, "") if dice.chance(0.6) else ""
        if is_stated:
            return replace(scene, verb=f"be {adjective or 'from ' + place}")
        if adjective:
            return replace(scene, subjects=(replace(subject, adjectives=(adjective,)),))
        return replace(scene, subjects=(replace(subject, after=f"from {place}"),))

    hypothesis = of(name)
    more = of(pick_or(dice, narrower(WORLD, name), name) if dice.chance(0.7) else name)
    above = [place for place in broader(WORLD, name) if place in ADJECTIVES]
    if above and dice.chance(0.6):
        less = of(above[0])
    elif is_stated:  # who is somewhere need not be from there
        less = replace(scene, verb=f"be in {name}")
    else:
        less = replace(scene, place=f"in {name}")
    case = Case(hypothesis, more, less, of(_elsewhere(dice, name)))
    return finish(dice, case, ("place", "subject", *(("time",) if is_stated else ())))
