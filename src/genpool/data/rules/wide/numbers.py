"""Wide rule on numbers, as words and digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from genpool.data.rules.cases import Case
from genpool.data.rules.changes import Dice
from genpool.data.rules.lexicon import Quantifier
from genpool.data.rules.scenes import Phrase, Scene
from genpool.data.rules.wide.drawing import activity, around, article, finish, somebody
from genpool.data.rules.wide.words import EXACT, PEOPLE, RANGES, THINGS, USES, VAGUE

_COUNTED = ("hold", "carry", "buy", "feed", "photograph", "draw", "repair", "wash")


def count(dice: Dice) -> Case:
    """Three men are 3 men, some men may be three, and four or at least five are not three."""
    if dice.chance(0.35):
        verb = dice.pick(_COUNTED)
        counted = Phrase(dice.pick(THINGS.under(dice.pick(USES[verb]))))
        scene = around(dice, Scene((somebody(dice, article(dice)),), verb, counted))
    else:
        counted = Phrase(dice.pick(PEOPLE.words))
        scene = activity(dice, counted)

    def so_many(row: Quantifier) -> Scene:
        phrase = replace(counted, determiner=row.words)
        if scene.object:
            return replace(scene, object=phrase)
        return replace(scene, subjects=(phrase,))

    exact = [row for row in EXACT if row.least]  # not "no men", which nothing else entails
    said = dice.pick(dice.pick((exact, exact, exact, VAGUE, RANGES)))
    rows = [row for row in (*EXACT, *VAGUE, *RANGES) if row != said]
    inside = [row for row in rows if said.least <= row.least and row.most <= said.most]
    outside = [row for row in rows if row.most < said.least or said.most < row.least]
    across = [row for row in rows if row not in inside and row not in outside]
    if not (inside and outside and across):
        return Case(scene)
    premises = (so_many(_usual(dice, options)) for options in (inside, across, outside))
    return finish(dice, Case(so_many(said), *premises), ("place", "time", "subject"))


def _usual(dice: Dice, rows: Sequence[Quantifier]) -> Quantifier:
    """Returns one of the rows: mostly an exact number or else a vague one, as people say them."""
    for usual in (EXACT, VAGUE):
        said = [row for row in rows if row in usual]
        if said and dice.chance(0.7):
            return dice.pick(said)
    return dice.pick(rows)
