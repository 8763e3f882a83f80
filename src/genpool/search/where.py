"""Conditions on the columns of an index: `lang == "en" and year >= 2000`.

    condition = part {"or" part}           part  = factor {"and" factor}
    factor    = "not" factor | "(" condition ")" | column operator value
    operator  = == != < <= > >= | "in" | "not in" (with a list of values: ["en", "de"])
    column    = a name; `in backquotes` if it is not letters, digits and underscores
    value     = "text", 'text', a number, true, false, null (an empty cell)

The text is parsed here and nothing of it is run as Python.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from genpool.errors import InputError, unknown_name
from genpool.search.row_values import Scalar

Condition = Callable[[Sequence[Scalar]], bool]

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<number>[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])
    |(?P<quoted>`[^`]+`)
    |(?P<name>[^\W\d]\w*)
    |(?P<sign>==|!=|<=|>=|<|>|\(|\)|\[|\]|,))""",
    re.VERBOSE,
)
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_CONSTANTS: dict[str, Scalar] = {"true": True, "false": False, "null": None}
#: brackets inside each other, and characters: no search needs more
MAX_DEPTH, MAX_CHARACTERS = 50, 10_000


def parse_condition(text: str, columns: Sequence[str]) -> Condition:
    """Returns a function that says whether a row, its values in the order of `columns`, is meant.

    A number is compared with text that is a number by its value: all cells of a CSV file are text.

    Args:
        text: the condition.
        columns: the names of the columns.

    Raises:
        InputError: the text is no condition, or names an unknown column.

    Example:
        >>> is_english = parse_condition('lang == "en"', ["id", "lang"])
        >>> is_english(["a1", "en"])
        True
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"a condition has {len(text):,} characters; at most {MAX_CHARACTERS:,}.")
    return _Parser(text, columns).parse()


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


class _Parser:
    def __init__(self, text: str, columns: Sequence[str]) -> None:
        self._text, self._columns = text, columns
        self._tokens = self._split(text)
        self._next = 0

    def _split(self, text: str) -> list[_Token]:
        tokens, place, end = [], 0, len(text.rstrip())
        while place < end:
            match = _TOKEN.match(text, place)
            if match is None:
                shown = text[place:].strip()[:20]
                hint = " Use == to compare." if shown.startswith("=") else ""
                raise InputError(
                    f'"{text}" is no condition: {shown!r} is not expected.{hint} An example: '
                    'lang == "en" and year >= 2000.'
                )
            kind = str(match.lastgroup)
            tokens.append(_Token(kind, match[kind], match.start(kind)))
            place = match.end()
        tokens.append(_Token("end", "the end", end))
        return tokens

    def parse(self) -> Condition:
        condition = self._any(0)
        if self._token.kind != "end":
            raise self._unexpected("and, or, or the end")
        return condition

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, *texts: str) -> bool:
        """Goes past a word or sign, if it is next."""
        token = self._token
        if token.kind not in ("name", "sign") or token.text not in texts:
            return False
        self._next += 1
        return True

    def _unexpected(self, expected: str) -> InputError:
        token = self._token
        return InputError(
            f'"{self._text}" is no condition: found {token.text!r} at character {token.place + 1}; '
            f"expected {expected}."
        )

    def _any(self, depth: int) -> Condition:
        parts = [self._all(depth)]
        while self._take("or"):
            parts.append(self._all(depth))
        return parts[0] if len(parts) == 1 else lambda row: any(part(row) for part in parts)

    def _all(self, depth: int) -> Condition:
        parts = [self._factor(depth)]
        while self._take("and"):
            parts.append(self._factor(depth))
        return parts[0] if len(parts) == 1 else lambda row: all(part(row) for part in parts)

    def _factor(self, depth: int) -> Condition:
        if depth > MAX_DEPTH:
            raise InputError(f"a condition has more than {MAX_DEPTH} brackets inside each other.")
        if self._take("not"):
            negated = self._factor(depth + 1)
            return lambda row: not negated(row)
        if self._take("("):
            inner = self._any(depth + 1)
            if not self._take(")"):
                raise self._unexpected(")")
            return inner
        return self._comparison()

    def _comparison(self) -> Condition:
        place = self._column()
        token = self._token
        if token.text in _COMPARISONS and token.kind == "sign":
            self._next += 1
            return _compare(place, token.text, self._value())
        negated = self._take("not")
        if not self._take("in"):
            raise self._unexpected("in" if negated else "==, !=, <, <=, >, >=, in or not in")
        tests = [_compare(place, "==", value) for value in self._values()]
        return lambda row: any(test(row) for test in tests) is not negated

    def _column(self) -> int:
        token = self._token
        if token.kind not in ("name", "quoted") or token.text in ("and", "or", "in"):
            raise self._unexpected("the name of a column")
        name = token.text.strip("`")
        if name not in self._columns:
            if not self._columns:
                raise InputError(
                    f"{name!r} is not kept: the index has no columns. Encode with --columns {name}."
                )
            raise InputError(unknown_name("column", name, self._columns))
        self._next += 1
        return self._columns.index(name)

    def _values(self) -> list[Scalar]:
        if not self._take("["):
            raise self._unexpected('a list such as ["en", "de"]')
        values: list[Scalar] = []
        while not self._take("]"):
            values.append(self._value())
            if not self._take(",") and self._token.text != "]":
                raise self._unexpected(", or ]")
        return values

    def _value(self) -> Scalar:
        token = self._token
        self._next += 1
        if token.kind == "text":
            return re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL)
        if token.kind == "number":
            return float(token.text)
        if token.kind == "name" and token.text in _CONSTANTS:
            return _CONSTANTS[token.text]
        self._next -= 1
        raise self._unexpected('a value: "text" in quotes, a number, true, false or null')


def _compare(place: int, sign: str, value: Scalar) -> Condition:
    compare = _COMPARISONS[sign]
    differs = sign == "!="

    def test(row: Sequence[Scalar]) -> bool:
        cell = _as_type_of(value, row[place])
        if type(cell) is not type(value) or value is None:
            # Of another type than the value: not equal, and neither below nor above.
            return (cell is value) is not differs if sign in ("==", "!=") else False
        return compare(cell, value)

    return test


def _as_type_of(value: Scalar, cell: Scalar) -> Scalar:
    """Returns a cell as a number, text or truth value like `value`, if it can be one."""
    if isinstance(value, bool):
        return {"true": True, "false": False}.get(cell.lower(), cell) if type(cell) is str else cell
    if isinstance(value, float) and not isinstance(cell, bool):
        try:
            return float(cell)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            return cell
    if isinstance(value, str) and type(cell) in (int, float):
        return str(cell)
    return cell
