"""Countries with their people, cities and continents.

A country that lies on two continents, or whose cities can be mistaken for others, is left out.
"""

from __future__ import annotations

from typing import NamedTuple

from genpool.data.rules.lexicon import Tree, table
from genpool.data.rules.wide.words import cells


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
