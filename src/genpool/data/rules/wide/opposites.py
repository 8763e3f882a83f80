"""Wide rules on opposites, of adjectives and of verbs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from genpool.data.rules.cases import Case
from genpool.data.rules.changes import Dice
from genpool.data.rules.scenes import Phrase, Scene
from genpool.data.rules.wide.antonyms import ACTIONS, PREDICATIVE, STATES, Opposites
from genpool.data.rules.wide.drawing import around, article, finish, somebody

_SEEN = ("look at", "point at", "talk about")
_MENTIONED = ("talk about", "look at", "think about", "ask about")
_MEANWHILE = ("wear a hat", "wear glasses", "be with a friend", "be in the room", "wear a uniform")


def _draw(dice: Dice, rows: Sequence[Opposites]) -> tuple[Opposites, Sequence[str], Sequence[str]]:
    """Returns a row, and its two sides in any order."""
    row = dice.pick(rows)
    return (row, row.first, row.second) if dice.chance(0.5) else (row, row.second, row.first)


def _unrelated(noun: str, row: Opposites) -> list[str]:
    """Returns other adjectives of a noun, from which nothing follows about this row."""
    return [
        side[0]
        for other in STATES
        if noun in other.things and other != row
        for side in (other.first, other.second)
        if side[0] not in (*row.first, *row.second)
    ]


def attribute(dice: Dice) -> Case:
    """A wide open door is an open one, a door may be open, and a closed one is not."""
    said_before_nouns = [row for row in STATES if row.first[0] not in PREDICATIVE]
    row, (word, *stronger), opposites = _draw(dice, said_before_nouns)
    noun = dice.pick(row.things)
    scene = around(dice, Scene((somebody(dice, article(dice)),), dice.pick(_SEEN)))

    def of(*adjectives: str) -> Scene:
        return replace(scene, object=Phrase(noun, "a", adjectives))

    unrelated = [other for other in _unrelated(noun, row) if other not in PREDICATIVE]
    less = of(dice.pick(unrelated)) if unrelated and dice.chance(0.5) else of()
    more = of(dice.pick((word, *stronger)))
    return finish(dice, Case(of(word), more, less, of(dice.pick(opposites))))


def state(dice: Dice) -> Case:
    """The door is closed, so it is not open; that the glass is not empty does not make it full."""
    row, (word, *stronger), opposites = _draw(dice, STATES)
    noun = dice.pick(row.things)
    scene = Scene((Phrase(noun, "the"),), f"be {word}", past=dice.chance(0.35))

    def be(adjective: str) -> Scene:
        return replace(scene, verb=f"be {adjective}")

    def be_not(adjective: str) -> Scene:
        return replace(scene, verb=f"be {adjective}", negated=True)

    somebody_else = replace(scene, subjects=(somebody(dice, article(dice)),))
    mentioned = replace(somebody_else, verb=dice.pick(_MENTIONED), object=Phrase(noun, "the"))
    less = dice.pick([mentioned, *map(be, _unrelated(noun, row))])
    in_between = not row.either_or and dice.chance(0.4)
    opposite = be(dice.pick(opposites))
    fixed = ("place", "time", "subject")
    if dice.chance(0.35):
        less = be_not(opposites[0]) if in_between else less
        turned = row.either_or and dice.chance(0.3)
        against = be_not(opposites[0]) if turned else be(dice.pick((word, *stronger)))
        return finish(dice, Case(be_not(word), opposite, less, against), fixed)
    less = be_not(opposites[0]) if in_between else less
    turned = row.either_or and dice.chance(0.4)
    more = be_not(opposites[0]) if turned else be(dice.pick(stronger))
    against = be_not(word) if dice.chance(0.25) else opposite
    return finish(dice, Case(be(word), more, less, against), fixed)


def deed(dice: Dice) -> Case:
    """Who purchases a car buys it; who sells it does not, and who looks at it may buy it."""
    row, (verb, *same), opposites = _draw(dice, ACTIONS)
    thing = Phrase(dice.pick(row.things), article(dice)) if row.things else None
    scene = around(dice, Scene((somebody(dice, article(dice)),), verb, thing))

    def do(action: str) -> Scene:
        return replace(scene, verb=action)

    less = do(dice.pick(_MENTIONED if thing else _MEANWHILE))
    if dice.chance(0.35):
        less = do(f"plan to {verb}")
    opposite = do(dice.pick(opposites))
    doing = do(dice.pick((verb, *same)))
    denial = replace(scene, negated=True)
    if dice.chance(0.3):
        return finish(dice, Case(denial, opposite, less, doing))
    return finish(dice, Case(scene, doing, less, denial if dice.chance(0.2) else opposite))
