"""Verbs between two people, by what they say about the other direction."""

from __future__ import annotations

from typing import NamedTuple

from genpool.data.rules.lexicon import table
from genpool.data.rules.wide.words import cells

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
