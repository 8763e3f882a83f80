"""Wide rules on kinds of things, people and colours, and on numbers as words and digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.release.wide_rules.drawing import activity, around, article, finish, somebody
from benchmarks.release.wide_rules.words import (
    CLOTHES,
    COLOURED_USES,
    COLOURS,
    EXACT,
    HABITS,
    PEOPLE,
    RANGES,
    THINGS,
    USES,
    VAGUE,
)
from genpool.reproduction.rules import Case, Quantifier
from genpool.reproduction.scenes import Dice, Phrase, Scene, Tree, takes_an

_ON_LAND = [word for word in THINGS.under("animal") if word not in THINGS.under("fish")]


def narrower(tree: Tree, word: str) -> list[str]:
    """Returns all narrower words."""
    return [other for other in tree.under(word) if other != word]


def broader(tree: Tree, word: str) -> list[str]:
    """Returns all broader words that can be said, the nearest first."""
    parent = tree.parent(word)
    return [parent, *broader(tree, parent)] if parent else []


def pick_or(dice: Dice, options: Sequence[str], default: str) -> str:
    """Returns one of the options, or the default if there is none."""
    return dice.pick(options) if options else default


def kind(dice: Dice) -> Case:
    """A parrot is a bird, a bird may be a parrot, and a fish is none."""
    if dice.chance(0.25):
        noun, tree, sayable = dice.pick(PEOPLE.words), PEOPLE, PEOPLE.words
        scene = activity(dice, Phrase(noun, article(dice)))
    elif dice.chance(0.2):
        noun, tree, sayable = dice.pick(_ON_LAND), THINGS, _ON_LAND
        scene = around(dice, Scene((Phrase(noun, article(dice)),), dice.pick(HABITS)))
    else:
        verb, tree = dice.pick(list(USES)), THINGS
        sayable = [word for use in USES[verb] for word in tree.under(use)]
        noun = dice.pick(sayable)
        if dice.chance(0.3) and tree.parent(noun) in sayable:  # broad words are few
            noun = tree.parent(noun)
        scene = around(dice, Scene((somebody(dice, article(dice)),), verb, Phrase(noun)))

    def of(word: str) -> Scene:
        if scene.object:
            return replace(scene, object=replace(scene.object, noun=word))
        return replace(scene, subjects=(replace(scene.subjects[0], noun=word),))

    rivals = [word for rival in tree.rivals(noun) for word in tree.under(rival) if word in sayable]
    if tree.parent(noun):
        less: Scene | None = of(tree.parent(noun))
    else:
        less = replace(scene, place="") if scene.place else None
    denied = not rivals or dice.chance(0.1)
    other = replace(scene, negated=True) if denied else of(dice.pick(rivals))
    more = of(pick_or(dice, narrower(tree, noun), noun))
    return finish(dice, Case(scene, more, less, other), () if scene.object else ("subject",))


def colour(dice: Dice) -> Case:
    """A navy blue shirt is blue, a shirt may be blue, and a red one is not."""
    name = dice.pick(COLOURS.words)
    if dice.chance(0.6):
        name = COLOURS.parent(name) or name
    subject = somebody(dice, article(dice))
    garment, verb = dice.pick(CLOTHES), dice.pick(list(COLOURED_USES))
    is_worn = dice.chance(0.4)
    if is_worn:
        scene = activity(dice, subject)
    else:
        scene = around(dice, Scene((subject,), verb, Phrase(dice.pick(COLOURED_USES[verb]))))

    def of(word: str) -> Scene:
        if scene.object:
            adjectives = (word,) if word else ()
            return replace(scene, object=replace(scene.object, adjectives=adjectives))
        words = f"{word} {garment}".strip()
        after = f"in {'an' if takes_an(words) else 'a'} {words}"
        return replace(scene, subjects=(replace(subject, after=after),))

    # A dark blue may be navy blue, but is no red.
    others = COLOURS.rivals(COLOURS.parent(name) or name)
    other = dice.pick([shade for word in others for shade in COLOURS.under(word)])
    more = pick_or(dice, narrower(COLOURS, name), name)
    less = dice.pick(["", *broader(COLOURS, name)])
    fixed = ("subject",) if is_worn else ()
    return finish(dice, Case(of(name), of(more), of(less), of(other)), fixed)


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
