"""More rules with more words: numbers, colours, countries, opposites, kinds, roles, nobody.

The embedded NLI classifier learns from pairs of these rules and those of the package together. What
they generate for a seed never changes.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.release.wide_rules.kinds import colour, count, kind
from benchmarks.release.wide_rules.nations import country, nationality
from benchmarks.release.wide_rules.opposites import attribute, deed, state
from benchmarks.release.wide_rules.people import converse, nobody, swap
from genpool.reproduction.rules import RULES, Rule

WIDE_RULES: Mapping[str, Rule] = {
    **RULES,
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
