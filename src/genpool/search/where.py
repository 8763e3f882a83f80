"""Conditions on the columns of an index: `lang == "en" and year >= 2000`.

    condition = part {"or" part}           part  = factor {"and" factor}
    factor    = "not" factor | "(" condition ")" | column operator value
    operator  = == != < <= > >= | "in" | "not in" (with a list of values: ["en", "de"])
    column    = a name; `in backquotes` if it is not letters, digits and underscores
    value     = "text", 'text', a number, true, false, null (an empty cell)

Python's own parser reads the structure (`ast.parse`); nothing is run as Python.
"""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from genpool.errors import InputError, unknown_name

Scalar = str | int | float | bool | None
Condition = Callable[[Sequence[Scalar]], bool]

_WORD = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|`(?P<quoted>[^`]+)`
    |(?<!\w)(?P<name>[^\W\d]\w*)|(?P<space>\s)""",
    re.VERBOSE | re.DOTALL,
)
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_CONSTANTS: dict[str, Scalar] = {"true": True, "false": False, "null": None}
#: levels of brackets and of `not`, and characters: no search needs more
MAX_DEPTH, MAX_CHARACTERS = 50, 10_000


def parse_condition(text: str, columns: Sequence[str]) -> Condition:
    """Returns a function that says whether a row, its values in the order of `columns`, is meant.

    A number is compared with text that is a number by its value: all cells of a CSV file are text.
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"a condition has {len(text):,} characters; at most {MAX_CHARACTERS:,}.")
    return _Parser(text, columns).parse()


class _Parser:
    """Replaces texts and names by the placeholders _0, _1, ..., so that Python reads the rest."""

    def __init__(self, text: str, columns: Sequence[str]) -> None:
        self._text, self._columns = text, columns
        self._words: dict[str, re.Match[str]] = {}  # by placeholder

    def parse(self) -> Condition:
        source = _WORD.sub(self._replace, self._text).strip()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # such as "1and": invalid decimal literal
                tree = ast.parse(source, mode="eval")
        except SyntaxError as error:
            found = source[max(error.offset or 1, 1) - 1 :][:40] or "the end"
            problem = "use == to compare" if found.startswith("= ") else str(error.msg).rstrip("?")
            raise self._refuse(found, problem) from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise self._refuse(source[:40], str(error) or type(error).__name__) from None
        return self._condition(tree.body, 0)

    def _replace(self, match: re.Match[str]) -> str:
        if match["space"]:
            return " "
        if match["name"] in ("and", "or", "not", "in"):
            return match[0]
        placeholder = f"_{len(self._words)}"
        self._words[placeholder] = match
        return f" {placeholder} "  # spaces: f"text" is not one word

    def _refuse(self, found: ast.AST | str, problem: str) -> InputError:
        shown = found if isinstance(found, str) else ast.unparse(found)
        original = re.sub(r" ?\b_\d+\b ?", lambda match: self._words[match[0].strip()][0], shown)
        return InputError(
            f'"{self._text}" is not a condition: at {original!r}: {problem}. An example: '
            'lang == "en" and year >= 2000.'
        )

    def _condition(self, node: ast.expr, depth: int) -> Condition:
        if depth > MAX_DEPTH:
            raise InputError(f"a condition has more than {MAX_DEPTH} levels of brackets and not.")
        if isinstance(node, ast.BoolOp):
            parts = [self._condition(value, depth + 1) for value in node.values]
            combine = all if isinstance(node.op, ast.And) else any
            return lambda row: combine(part(row) for part in parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            negated = self._condition(node.operand, depth + 1)
            return lambda row: not negated(row)
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            raise self._refuse(node, "expected a comparison: ==, !=, <, <=, >, >=, in or not in")
        place, kind, right = self._column(node.left), type(node.ops[0]), node.comparators[0]
        if kind in _COMPARISONS:
            return _compare(place, kind, self._value(right))
        if not isinstance(right, ast.List):
            raise self._refuse(right, 'expected a list such as ["en", "de"]')
        tests = [_compare(place, ast.Eq, self._value(value)) for value in right.elts]
        return lambda row: any(test(row) for test in tests) is (kind is ast.In)

    def _column(self, node: ast.expr) -> int:
        word = self._words[node.id] if isinstance(node, ast.Name) else None
        if word is None or word["text"]:
            raise self._refuse(node, "expected the name of a column")
        name = word["quoted"] or word["name"]
        if not self._columns:
            raise InputError(
                f"{name!r} is not kept: the index has no columns. Encode with --columns {name}."
            )
        if name not in self._columns:
            raise InputError(unknown_name("column", name, self._columns))
        return self._columns.index(name)

    def _value(self, node: ast.expr) -> Scalar:
        if isinstance(node, ast.Name):
            word = self._words[node.id]
            if word["text"]:  # a backslash stands for the character after it
                return re.sub(r"\\(.)", r"\1", word["text"][1:-1], flags=re.DOTALL)
            if word["name"] in _CONSTANTS:
                return _CONSTANTS[word["name"]]
        is_negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
        number = node.operand if is_negative else node  # type: ignore[attr-defined]
        value = number.value if isinstance(number, ast.Constant) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                return -float(value) if is_negative else float(value)
            except OverflowError as error:
                raise self._refuse(node, str(error)) from None
        raise self._refuse(node, 'expected "text" in quotes, a number, true, false or null')


def _compare(place: int, kind: type[ast.cmpop], value: Scalar) -> Condition:
    compare = _COMPARISONS[kind]

    def test(row: Sequence[Scalar]) -> bool:
        cell = _as_type_of(value, row[place])
        if type(cell) is not type(value) or value is None:
            # Of another type than the value: not equal, and neither below nor above.
            return kind in (ast.Eq, ast.NotEq) and (cell is value) is (kind is ast.Eq)
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
