"""Conditions on columns: what they mean, and that nothing else is accepted."""

from __future__ import annotations

import random

import pytest

from genpool.errors import InputError
from genpool.search.where import MAX_CHARACTERS, MAX_DEPTH, parse_condition

COLUMNS = ["id", "lang", "year", "my column", "draft", "class"]
ROW = ["a1", "en", "1999", "x", None, "x"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('lang == "en"', True),
        ("lang == 'de'", False),
        ('lang != "de"', True),
        ('lang in ["de", "en"]', True),
        ('lang not in ["de", "en"]', False),
        ("lang in []", False),
        ("year == 1999", True),  # the cell is text
        ('year == "1999"', True),
        ("year == 1999.0", True),
        ("year >= 2000", False),
        ("year < 2e3", True),
        ("year > -5", True),
        ('year < "2"', True),  # as text
        ("lang > 5", False),  # of another type: neither below nor above
        ("lang <= 5", False),
        ("lang == 5", False),
        ("lang != 5", True),
        ("draft == null", True),
        ("draft != null", False),
        ("lang == null", False),
        ("lang != null", True),
        ('draft == "x"', False),
        ('draft != "x"', True),
        ("draft < 1", False),
        ("draft == false", False),
        ('`my column` == "x"', True),
        ('not lang == "en"', False),
        ('lang == "de" or year < 2000 and id == "a1"', True),
        ('(lang == "de" or year < 2000) and id == "b"', False),
        ('not (lang == "de" or id == "b")', True),
        (r'lang == "e\n"', True),  # a backslash stands for the next character
        (' lang=="en"and year==1999 ', True),
        ('lang == "en"\n  and class == "x" ', True),  # a word of Python is a name like any other
    ],
)
def test_a_condition_means_what_it_says(text: str, expected: bool) -> None:
    assert parse_condition(text, COLUMNS)(ROW) is expected


@pytest.mark.parametrize(
    ("cell", "text", "expected"),
    [
        (5, "v == 5", True),
        (5, 'v == "5"', True),
        (5.5, "v > 5", True),
        (True, "v == true", True),
        ("True", "v == true", True),
        (True, "v == 1", False),
        (1, "v == true", False),
        ("nan", "v == 1", False),
        (10**400, "v > 1", False),  # no float has this size
    ],
)
def test_values_keep_their_types(cell: object, text: str, expected: bool) -> None:
    assert parse_condition(text, ["v"])([cell]) is expected  # type: ignore[list-item]


def test_and_or_not_agree_with_python() -> None:
    chance = random.Random(0)

    def make(depth: int) -> str:
        kind = chance.randrange(4) if depth else 3
        if kind == 0:
            return f"not ({make(depth - 1)})"
        if kind < 3:
            return f"({make(depth - 1)}) {('and', 'or')[kind - 1]} {make(depth - 1)}"
        return (
            f"{chance.choice('abc')} {chance.choice(['==', '!=', '<', '>='])} {chance.choice('01')}"
        )

    for _ in range(200):
        text = make(4)
        row = [chance.randrange(2) for _ in "abc"]
        expected = eval(text, {"a": row[0], "b": row[1], "c": row[2]})
        assert parse_condition(text, list("abc"))(row) is expected, text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at 'the end': invalid syntax"),
        ("lang", "at 'lang': expected a comparison: ==, !=, <"),
        ('lang = "en"', "use == to compare"),
        ("lang == en", "at 'en': expected \"text\" in quotes, a number"),
        ('lang == "en', "unterminated string"),
        ('"en" == lang', "expected the name of a column"),
        ('lang == "en" lang', "at 'lang': invalid syntax"),
        ('(lang == "en"', r"'\(' was never closed"),
        ("lang in 5", "at '5': expected a list such as"),
        ('lang in ["a" "b"]', "Perhaps you forgot a comma"),
        ('lang == f"en"', "at '\"en\"': invalid syntax"),
        ('lang not == "en"', "invalid syntax"),
        ("1990 < year < 2000", "expected a comparison"),
        ("lang is null", "at 'is null': invalid syntax"),
        ("year == 1" + "0" * 400, "too large"),
        ("lang == 5j", 'expected "text" in quotes'),
        ("\x00", "null bytes"),
        ('long == "en"', "unknown column 'long'. Did you mean 'lang'"),
        ('lang.upper() == "EN"', "at 'lang.upper\\(\\)': expected the name of a column"),
        ("__import__('os').system('x')", "expected a comparison"),
        ("lang == 1 if 2 else 3", "invalid syntax"),
        ("(" * 300 + "lang == 1", "too many nested parentheses"),
        ("not " * (MAX_DEPTH + 2) + "lang == 1", "more than 50 levels"),
        ("lang == 1 " + " " * MAX_CHARACTERS, "at most 10,000"),
    ],
)
def test_everything_else_is_refused_in_words(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_condition(text, COLUMNS)


def test_an_index_without_columns_says_how_to_keep_them() -> None:
    with pytest.raises(InputError, match=r"the index has no columns\. Encode with --columns lang"):
        parse_condition('lang == "en"', [])
