"""More rules with more words: numbers, colours, countries, opposites, kinds, roles, nobody."""

from __future__ import annotations

from collections.abc import Mapping

from genpool.data.rules.cases import Rule
from genpool.data.rules.wide.kinds import colour, kind
from genpool.data.rules.wide.numbers import count
from genpool.data.rules.wide.opposites import attribute, deed, state
from genpool.data.rules.wide.people import converse, nobody, swap
from genpool.data.rules.wide.world import country, nationality

WIDE_RULES: Mapping[str, Rule] = {
    "kind": kind,
    "colour": colour,
    "country": country,
    "nationality": nationality,
    "count": count,
    "attribute": attribute,
    "state": state,
    "deed": deed,
    "swap": swap,
    "converse": converse,
    "nobody": nobody,
}
