"""Adjectives and verbs with their opposites.

A row has the things that are spoken of, a word and its opposite; after a word come others that
entail it. "Either" says that there is nothing between them: what is not open is closed, but what is
not full need not be empty.
"""

from __future__ import annotations

from typing import NamedTuple

from genpool.data.rules.lexicon import table
from genpool.data.rules.wide.words import cells


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
