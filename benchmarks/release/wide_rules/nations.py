"""Cities, countries and continents, and the wide rules on them and on people from there."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from benchmarks.release.wide_rules.drawing import activity, article, finish, somebody
from benchmarks.release.wide_rules.kinds import broader, narrower, pick_or
from benchmarks.release.wide_rules.words import cells
from genpool.reproduction.rules import Case
from genpool.reproduction.scenes import Dice, Scene, Tree, table


class Nation(NamedTuple):
    """A country, the adjective of its people, and some of its cities."""

    country: str
    adjective: str
    cities: tuple[str, ...]
    continent: str


NATIONS = [
    Nation(country, adjective, cells(cities), continent)
    for country, adjective, cities, continent in table(
        """
    France            | French       | Paris, Lyon, Marseille             | Europe
    Germany           | German       | Berlin, Munich, Hamburg            | Europe
    Italy             | Italian      | Rome, Milan, Venice                | Europe
    Spain             | Spanish      | Madrid, Barcelona, Seville         | Europe
    England           | English      | London, Manchester, Liverpool      | Europe
    Greece            | Greek        | Athens                             | Europe
    Sweden            | Swedish      | Stockholm                          | Europe
    Norway            | Norwegian    | Oslo                               | Europe
    Poland            | Polish       | Warsaw, Krakow                     | Europe
    Portugal          | Portuguese   | Lisbon, Porto                      | Europe
    Ireland           | Irish        | Dublin                             | Europe
    Austria           | Austrian     | Vienna, Salzburg                   | Europe
    Hungary           | Hungarian    | Budapest                           | Europe
    Japan             | Japanese     | Tokyo, Osaka, Kyoto                | Asia
    China             | Chinese      | Beijing, Shanghai                  | Asia
    India             | Indian       | Mumbai, Delhi                      | Asia
    Thailand          | Thai         | Bangkok                            | Asia
    Vietnam           | Vietnamese   | Hanoi                              | Asia
    South Korea       | South Korean | Seoul                              | Asia
    Nepal             | Nepalese     | Kathmandu                          | Asia
    Pakistan          | Pakistani    | Karachi, Lahore                    | Asia
    Nigeria           | Nigerian     | Lagos                              | Africa
    Kenya             | Kenyan       | Nairobi                            | Africa
    Morocco           | Moroccan     | Casablanca, Marrakesh              | Africa
    Ethiopia          | Ethiopian    | Addis Ababa                        | Africa
    Ghana             | Ghanaian     | Accra                              | Africa
    Canada            | Canadian     | Toronto, Montreal, Vancouver       | North America
    Mexico            | Mexican      | Mexico City, Cancun                | North America
    the United States | American     | New York City, Chicago, Boston     | North America
    Brazil            | Brazilian    | Rio de Janeiro, Sao Paulo          | South America
    Argentina         | Argentinian  | Buenos Aires                       | South America
    Peru              | Peruvian     | Lima                               | South America
    Chile             | Chilean      | Santiago                           | South America
    """,
        "|",
    )
]
CONTINENTS = tuple(dict.fromkeys(row.continent for row in NATIONS))


def _line(broad: str, narrower: list[str] | tuple[str, ...]) -> str:
    return f"{broad}: {', '.join(narrower)}"


#: where somebody is: continents, countries, cities
WORLD = Tree(
    "\n".join(
        [
            _line("[world]", CONTINENTS),
            *(
                _line(name, [row.country for row in NATIONS if row.continent == name])
                for name in CONTINENTS
            ),
            *(_line(row.country, row.cities) for row in NATIONS),
        ]
    )
)
#: adjectives of people by the place that they are from
ADJECTIVES = {row.country: row.adjective for row in NATIONS} | {
    "Europe": "European",
    "Asia": "Asian",
    "Africa": "African",
}


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
