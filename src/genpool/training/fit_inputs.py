"""Checks of what `fit` is given: texts or pairs, and their labels or scores.

Lists, NumPy arrays and the columns of pandas and polars are accepted. Mistakes are found before any
work starts, and the rows that they are in are named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from genpool.data.reader import Example
from genpool.errors import InputError
from genpool.inference.sentence_vectors import require_iterable

#: rows that a message names
MAX_NAMED_ROWS = 5
Task = Literal["label", "score"]


def text_examples(texts: Any, targets: Any, task: Task, what: str) -> list[Example]:
    """Returns texts and their labels or scores as examples.

    Args:
        texts: a list, array or column of strings.
        targets: as many labels or scores.
        task: "label" or "score".
        what: what the rows are, for messages: "training" or "dev".

    Raises:
        InputError: they cannot be used, and why.
    """
    rows = as_list(texts, f"the {what} texts")
    _check_strings(rows, f"the {what} texts")
    labels, scores = _targets(targets, len(rows), task, what)
    return [
        Example(label, text, score=score)
        for text, label, score in zip(rows, labels, scores, strict=True)
    ]


def pair_examples(pairs: Any, targets: Any, task: Task, what: str) -> list[Example]:
    """Returns pairs of sentences and their labels or scores as examples.

    Args:
        pairs: a list of pairs, or a pair of columns.
        targets: as many labels or scores.
        task: "label" or "score".
        what: what the rows are, for messages: "training" or "dev".

    Raises:
        InputError: they cannot be used, and why.
    """
    name = f"the {what} pairs"
    rows = as_list(pairs, name)
    for number, pair in enumerate(rows):
        if isinstance(pair, str) or not isinstance(pair, Collection) or len(pair) != 2:
            raise InputError(
                f"{name}: row {number} is {pair!r}; expected two sentences. Two columns are joined "
                "by list(zip(first, second))."
            )
    first, second = ([list(pair)[side] for pair in rows] for side in (0, 1))
    _check_strings(first, f"{name}, first sentences")
    _check_strings(second, f"{name}, second sentences")
    labels, scores = _targets(targets, len(rows), task, what)
    return [
        Example(label, one, other, score=score)
        for one, other, label, score in zip(first, second, labels, scores, strict=True)
    ]


#: how examples are checked, by the number of sentences of each
EXAMPLE_CHECKS: dict[int, Callable[[Any, Any, Task, str], list[Example]]] = {
    1: text_examples,
    2: pair_examples,
}


def as_list(values: Any, name: str) -> list[Any]:
    """Returns a list, array or column as a list of Python values.

    Raises:
        InputError: it is a string, a data frame, an array of several dimensions, or empty.
    """
    if isinstance(values, str | bytes):
        raise InputError(f"{name} are one string; expected a list of them.")
    columns = getattr(values, "columns", None)
    if columns is not None:
        names = ", ".join(map(repr, list(columns)[:MAX_NAMED_ROWS]))
        raise InputError(
            f"{name} are a data frame with the columns {names}; expected one column of it: "
            "frame[NAME]."
        )
    shape: tuple[int, ...] = tuple(getattr(values, "shape", ()))
    if len(shape) > 2 or (len(shape) == 2 and shape[1] != 2):
        raise InputError(f"{name} have the shape {shape}; expected one dimension.")
    for method in ("tolist", "to_list"):  # NumPy and pandas; polars
        if hasattr(values, method):
            values = getattr(values, method)()
            break
    rows = list(require_iterable(values))
    if not rows:
        raise InputError(f"{name} are empty; expected at least two rows.")
    return rows


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or the missing value of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


def _check_strings(rows: Sequence[Any], name: str) -> None:
    missing = [row for row, value in enumerate(rows) if is_missing(value)]
    if missing:
        raise InputError(
            f"{name} have {len(missing):,} missing values (rows {_named(missing)}); leave these "
            "rows out, with their labels."
        )
    for row, value in enumerate(rows):
        if not isinstance(value, str):
            kind = type(value).__name__
            raise InputError(f"{name}: row {row} is a {kind}, {value!r}; expected a string.")


def _targets(
    targets: Any, count: int, task: Task, what: str
) -> tuple[list[str | None], list[float | None]]:
    """Returns the label and the score of each row, of which one is None."""
    name = f"the {what} {task}s"
    values = as_list(targets, name)
    if len(values) != count:
        raise InputError(
            f"{len(values):,} {what} {task}s for {count:,} rows; expected as many of each."
        )
    missing = [row for row, value in enumerate(values) if is_missing(value)]
    if missing:
        raise InputError(
            f"{name} have {len(missing):,} missing values (rows {_named(missing)}); leave these "
            "rows out, with their texts."
        )
    nothing: list[Any] = [None] * count
    if task == "score":
        return nothing, _scores(values, name)
    return _labels(values, name), nothing


def _labels(values: Sequence[Any], name: str) -> list[str | None]:
    """Returns labels as text: 1, 1.0 and True are "1", "1" and "true", as in a table."""
    kinds = {_kind(value) for value in values}
    if len(kinds) > 1:
        examples = [next(value for value in values if _kind(value) == kind) for kind in kinds]
        shown = " and ".join(sorted(repr(value) for value in examples))
        raise InputError(f"{name} are of mixed types, such as {shown}; expected one type.")
    kind = next(iter(kinds))
    if kind == "number":
        broken = next((value for value in values if float(value) != int(value)), None)
        if broken is not None:
            raise InputError(
                f"{name} contain {broken!r}, which is no whole number. To learn scores: "
                'task="score".'
            )
        return [str(int(value)) for value in values]
    if kind == "truth value":
        return ["true" if value else "false" for value in values]
    if kind != "string":
        raise InputError(f"{name} are of the type {kind}; expected strings or whole numbers.")
    empty = [row for row, value in enumerate(values) if not value.strip()]
    if empty:
        raise InputError(f"{name} have {len(empty):,} empty strings (rows {_named(empty)}).")
    return [value.strip() for value in values]


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool | np.bool_):
        return "truth value"
    if isinstance(value, Integral | Real | np.number):
        return "number"
    return type(value).__name__


def _scores(values: Sequence[Any], name: str) -> list[float | None]:
    for row, value in enumerate(values):
        if _kind(value) != "number" or not math.isfinite(float(value)):
            raise InputError(f"{name}: row {row} is {value!r}; expected a finite number.")
    return [float(value) for value in values]


def _named(rows: Sequence[int]) -> str:
    dots = ", ..." if len(rows) > MAX_NAMED_ROWS else ""
    return ", ".join(map(str, rows[:MAX_NAMED_ROWS])) + dots
