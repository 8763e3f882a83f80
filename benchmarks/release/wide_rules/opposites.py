"""Wide rules on opposites, of adjectives and of verbs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from benchmarks.release.wide_rules.drawing import around, article, finish, somebody
from benchmarks.release.wide_rules.words import cells
from genpool.reproduction.rules import Case
from genpool.reproduction.scenes import Dice, Phrase, Scene, table


class Opposites(NamedTuple):
    """Two words that exclude each other, of these things, with other words that entail each."""

    things: tuple[str, ...]
    first: tuple[str, ...]  # the word, then stronger words or synonyms
    second: tuple[str, ...]
    either_or: bool  # what is not the one is the other


def _opposites(text: str) -> list[Opposites]:
    return [
        Opposites(cells(things), cells(first), cells(second), kind == ["either"])
        for things, first, second, *kind in table(text, "|")
    ]


PERSONS = "man, woman, boy, girl"
#: not said before a noun
PREDICATIVE = cells("asleep, awake, alive, on, off")

STATES = _opposites(f"""
    door, window, gate, drawer, shop | open, wide open | closed, firmly closed | either
    glass, bottle, bucket, bus, theater | full, completely full | empty, completely empty
    coffee, soup, tea, plate | hot, very hot | cold, ice-cold
    floor, kitchen, car, shirt, table | clean, spotlessly clean | dirty, filthy
    room, street, tunnel, stage | dark, pitch-dark | bright, brightly lit
    library, street, classroom | quiet, completely silent | noisy, extremely loud
    road, towel, coat, floor, bench | wet, soaking wet | dry, completely dry
    lamp, television, radio, oven | on, switched on | off, switched off | either
    exam, puzzle, question, game | easy, very easy | difficult, very difficult
    knife, pencil, sword | sharp, razor-sharp | blunt, completely blunt
    suitcase, bag, box, table | heavy, extremely heavy | light, very light
    rope, river, letter, movie, tunnel | long, extremely long | short, very short
    box, house, dog, garden, car, bag | big, huge, large | small, tiny, little
    ticket, watch, car, hotel, restaurant | expensive, very expensive | cheap, very cheap
    road, bridge, river, hallway | wide, very wide | narrow, very narrow
    road, machine, bridge, street | safe, perfectly safe | dangerous, very dangerous
    movie, book, lecture, game | interesting, fascinating | boring, extremely boring
    pillow, chair, mattress | soft, very soft | hard, rock-hard
    car, house, bridge, bicycle, machine | new, brand-new | old, ancient
    fence, ladder, shelf, ceiling | high, very high | low, very low
    hotel, restaurant, station, market | crowded, packed | deserted, completely deserted
    {PERSONS} | tall, very tall | short, very short
    {PERSONS} | rich, very rich | poor, extremely poor
    boy, girl, child | happy, overjoyed | sad, very sad
    baby, guard, student | asleep, fast asleep | awake, wide awake | either
    {PERSONS} | healthy, perfectly healthy | sick, seriously ill
    boxer, horse, athlete | strong, very strong | weak, very weak
    man, woman, waiter | angry, furious | calm, perfectly calm
    fish, bird, plant | alive, alive and well | dead, stone dead | either
    man, woman | married, happily married | single, unmarried | either
    man, woman | young, very young | old, very old
""")

#: verbs with an object, and verbs without ("-")
ACTIONS = _opposites("""
    car, bicycle, house, painting, guitar | buy, purchase | sell, sell off
    door, window, gate, suitcase | open, open up | close, shut, slam
    door, gate, car, suitcase | lock, lock up | unlock
    cart, stroller, sled, wheelbarrow | push, shove | pull, drag
    box, chair, bag, stone | lift, raise, pick up | put down, set down
    house, shop, church, room, building | enter, walk into | leave, walk out of, exit
    wall, tower, house, sandcastle | build, construct | destroy, demolish
    match, game, race, bet | win | lose
    song, city, book, job | praise, compliment | criticize, condemn
    gift, offer, invitation, job | accept | refuse, reject, decline
    lamp, radio, television, light | turn on, switch on | turn off, switch off
    hat, coat, jacket, helmet | put on, slip on | take off, remove
    bus, train, plane, boat | get on, board | get off, leave
    glass, bucket, box, bottle | fill, fill up | empty, empty out
    letter, package, postcard | send, mail | receive, get
    ball, frisbee, stick | catch | drop
    shoe, rope, boat | tie, tie up | untie
    suitcase, box, bag | pack, pack up | unpack
    ladder, tree, hill, rope | climb up | climb down
    chair, toy, window, bicycle | break, smash | repair, fix, mend
    ring, letter, picture, knife | hide, conceal | show, display
    - | laugh, giggle | cry, weep, sob
    - | whisper | shout, yell, scream
    - | stand up | sit down
    - | wake up | fall asleep, doze off
    - | arrive | leave, depart
    - | smile, grin | frown, scowl
    - | sit, sit still | stand
    - | sit, sit still | dance
    - | sleep, nap | run, sprint
    - | sleep, nap | swim
    - | sleep, nap | work, work hard
    - | go upstairs, run upstairs | go downstairs, run downstairs
    - | speed up, accelerate | slow down, brake
""")


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
