"""The labels of the wide rules, found a second time from the two sentences alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import pytest

from benchmarks.release.wide_rules import WIDE_RULES, nations
from genpool.reproduction.rules import ask
from genpool.reproduction.scenes import Dice, render


def pairs_of(rule: str, count: int = 400) -> Iterable[tuple[str, str, str]]:
    """Label, premise and hypothesis of many cases of a rule."""
    dice = Dice(7)
    for _ in range(count):
        hypothesis, premises = ask(WIDE_RULES[rule], dice)
        for label, premise in premises.items():
            yield label, render(premise), render(hypothesis)


def label_of(allowed: set[object], stated: set[object]) -> str:
    """What holds in all situations that the premise allows, in some of them, or in none."""
    if allowed <= stated:
        return "entailment"
    return "neutral" if allowed & stated else "contradiction"


_WORDS = """no one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen"""
_VALUES = {word: number for number, word in enumerate(_WORDS.split())}
_VALUES |= {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "one hundred": 100}
_VALUES |= {"a pair of": 2, "a couple of": 2, "a dozen": 12}
_NUMBER = "|".join(sorted(_VALUES, key=len, reverse=True))
_QUANTITY = re.compile(
    rf"(at least |more than |at most |fewer than )?\b({_NUMBER}|\d+)\b"
    r"|\b(some|several|a group of)\b"
)


def counts_in(sentence: str) -> set[object]:
    (limit, number, vague), *_ = _QUANTITY.findall(sentence.lower())
    if vague:
        return set(range(2 if vague == "some" else 3, 150))
    value = int(number) if number.isdigit() else _VALUES[number]
    first = {"at most ": 0, "fewer than ": 0, "more than ": value + 1}.get(limit, value)
    last = {"at least ": 149, "more than ": 149, "fewer than ": value - 1}.get(limit, value)
    return set(range(first, last + 1))


def test_numbers_agree_with_counting() -> None:
    forms = Counter[str]()
    for label, premise, hypothesis in pairs_of("count"):
        assert label == label_of(counts_in(premise), counts_in(hypothesis)), (premise, hypothesis)
        forms["digits" if re.search(r"\d", premise) else "words"] += 1
    assert min(forms.values()) > 300  # both are written, "3 men" and "three men"


_SHADES = {
    "red": "bright dark crimson",
    "blue": "dark light navy",
    "green": "dark light olive",
    "brown": "dark light",
    "grey": "dark light",
    "yellow": "bright pale",
    "pink": "bright pale",
    **dict.fromkeys(("black", "white", "purple", "orange"), ""),
}
_SPECTRUM = {
    (colour, shade)
    for colour, shades in _SHADES.items()
    for shade in ["other", "another", *shades.split()]
}


def colours_in(sentence: str) -> set[object]:
    found = re.findall(rf"\b(?:(\w+) )?({'|'.join(_SHADES)})\b|\b(crimson)\b", sentence)
    if not found:
        return set(_SPECTRUM)
    ((shade, colour, crimson),) = found
    if crimson:
        return {("red", "crimson")}
    if shade in _SHADES[colour].split():
        return {(colour, shade)}
    return {atom for atom in _SPECTRUM if atom[0] == colour}


def test_colours_agree_with_their_shades() -> None:
    for label, premise, hypothesis in pairs_of("colour"):
        assert label == label_of(colours_in(premise), colours_in(hypothesis)), (premise, hypothesis)


#: continent: adjective country: cities
_GAZETTEER = """
    Europe European
    French France: Paris, Lyon, Marseille; German Germany: Berlin, Munich, Hamburg
    Italian Italy: Rome, Milan, Venice; Spanish Spain: Madrid, Barcelona, Seville
    English England: London, Manchester, Liverpool; Greek Greece: Athens; Swedish Sweden: Stockholm
    Norwegian Norway: Oslo; Polish Poland: Warsaw, Krakow; Portuguese Portugal: Lisbon, Porto
    Irish Ireland: Dublin; Austrian Austria: Vienna, Salzburg; Hungarian Hungary: Budapest
    Asia Asian
    Japanese Japan: Tokyo, Osaka, Kyoto; Chinese China: Beijing, Shanghai
    Indian India: Mumbai, Delhi; Thai Thailand: Bangkok; Vietnamese Vietnam: Hanoi
    South_Korean South_Korea: Seoul; Nepalese Nepal: Kathmandu; Pakistani Pakistan: Karachi, Lahore
    Africa African
    Nigerian Nigeria: Lagos; Kenyan Kenya: Nairobi; Moroccan Morocco: Casablanca, Marrakesh
    Ethiopian Ethiopia: Addis Ababa; Ghanaian Ghana: Accra
    North_America -
    Canadian Canada: Toronto, Montreal, Vancouver; Mexican Mexico: Mexico City, Cancun
    American the_United_States: New York City, Chicago, Boston
    South_America -
    Brazilian Brazil: Rio de Janeiro, Sao Paulo; Argentinian Argentina: Buenos Aires
    Peruvian Peru: Lima; Chilean Chile: Santiago
"""


def gazetteer() -> dict[str, set[object]]:
    """Every name with the points of the world that it covers; a country also has its villages."""
    covered: dict[str, set[object]] = {}
    broad: list[str] = []
    for line in _GAZETTEER.strip().splitlines():
        if ":" not in line:
            broad = [name.replace("_", " ") for name in line.split() if name != "-"]
            covered |= {name: {f"sea of {broad[0]}"} for name in broad}
            continue
        for entry in line.split(";"):
            names, _, cities = entry.partition(": ")
            country = [name.replace("_", " ") for name in names.split()]
            points: set[object] = {f"village of {country[1]}"}
            for city in cities.split(", "):
                covered[city.strip()] = {f"center of {city}", f"suburb of {city}"}
                points |= covered[city.strip()]
            covered |= dict.fromkeys(country, points)
            for name in broad:
                covered[name] |= points
    return covered


COVERED = gazetteer()
_NAME = "|".join(sorted(COVERED, key=len, reverse=True))
WORLD = set().union(*COVERED.values())


def points_of(sentence: str, pattern: str) -> set[object]:
    found = re.search(pattern.format(names=f"({_NAME})"), sentence)
    return COVERED[next(filter(None, found.groups()))] if found else WORLD


@pytest.mark.parametrize(
    ("rule", "pattern"),
    [
        ("country", r"\bin {names}\b"),
        ("nationality", r"\bfrom {names}\b|(?:\b[Aa]n?|[Tt]he|is|was) {names}\b"),
    ],
)
def test_places_and_origins_agree_with_the_map(rule: str, pattern: str) -> None:
    for label, premise, hypothesis in pairs_of(rule):
        allowed, stated = (points_of(text, pattern) for text in (premise, hypothesis))
        assert stated != WORLD
        assert label == label_of(allowed, stated), (premise, hypothesis)


def test_the_map_names_every_place() -> None:
    assert {*nations.WORLD.words, *nations.ADJECTIVES.values()} == {*COVERED}
