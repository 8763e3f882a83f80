"""Texts and labels as users have them: lists, arrays, columns of pandas, polars and Arrow.

They are checked here, before any work starts. A message names the rows that are wrong, from 0; the
argument `name` says what the values are: "the training texts".
"""

from __future__ import annotations

import math
import reprlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, cast

import numpy as np

from genpool.errors import InputError

#: rows that a message names
MAX_NAMED_ROWS = 5


def require_iterable(values: Any) -> Iterable[Any]:
    """Returns the sentences, or pairs of them, of anything that is a list of them.

    A data frame is none: iterating one would take the names of its columns for sentences.
    """
    kind = type(values).__name__
    names = getattr(values, "column_names", None) or getattr(values, "columns", None)
    if names is not None:
        # What pandas, polars, Arrow and the hub's data sets have, none of which is imported here.
        names = list(map(str, names))
        column = next((name for name in names if name.lower() in ("text", "sentence")), "text")
        raise InputError(
            f"got a {kind} with the columns {', '.join(map(repr, names)) or 'none'}; expected "
            f"sentences: name one of its columns, such as frame[{column!r}], or for pairs "
            "list(zip(frame[FIRST], frame[SECOND]))."
        )
    if isinstance(values, Mapping) or not isinstance(values, Iterable):
        raise InputError(f"got {reprlib.repr(values)} ({kind}); expected a list of sentences.")
    to_list = getattr(values, "to_pylist", None)  # an Arrow column
    return values if to_list is None else cast(Iterable[Any], to_list())


def require_text(sentence: object, place: str = "") -> str:
    """Returns the sentence; raises InputError for anything else, with its place among many."""
    if isinstance(sentence, str):
        return sentence
    hint = ' A missing value can be an empty sentence, "" (pandas: .fillna("")).'
    raise InputError(
        f"{place}got {sentence!r} ({type(sentence).__name__}); expected a sentence (str)."
        f"{hint if is_missing(sentence) else ''}"
    )


def require_texts(sentences: Any) -> Iterator[str]:
    """Yields the sentences of a list or stream; raises InputError at the first that is none."""
    for number, sentence in enumerate(require_iterable(sentences)):
        yield require_text(sentence, f"sentence {number}: ")


def require_pairs(pairs: Any) -> Iterator[tuple[str, str]]:
    """Yields the pairs of a list or stream; raises InputError at the first that is none."""
    for number, pair in enumerate(require_iterable(pairs)):
        _require_two(pair, f"pair {number}")
        first, second = (require_text(side, f"pair {number}: ") for side in pair)
        yield first, second


def read_column(values: Any, name: str) -> list[Any]:
    """Returns a list, an array or a column, also a table with one column, as Python values.

    Raises InputError for one string, a table of several columns, or no list at all.
    """
    if isinstance(values, str | bytes):
        raise InputError(f"{name} are one string; expected a list of them.")
    shape: tuple[int, ...] | None = getattr(values, "shape", None)  # of arrays, columns and tables
    if shape is not None and len(shape) != 1:
        if len(shape) != 2 or shape[1] != 1:
            columns = ", ".join(map(repr, list(getattr(values, "columns", ()))[:MAX_NAMED_ROWS]))
            table = f" and are a data frame with the columns {columns}" if columns else ""
            raise InputError(
                f"{name} have the shape {tuple(shape)}{table}; expected one dimension: name one "
                "column, frame[NAME]."
            )
        values = getattr(values, "to_numpy", lambda: values)().ravel()
    to_list = getattr(values, "tolist", getattr(values, "to_list", None))  # NumPy, pandas; polars
    values = require_iterable(values if to_list is None else to_list())
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def read_texts(texts: Any, name: str = "the texts") -> list[str]:
    """Returns texts, as `read_column` accepts them; InputError if one is missing or no string."""
    return _strings(read_column(texts, name), name)


def read_pairs(pairs: Any, name: str = "the pairs") -> list[tuple[str, str]]:
    """Returns a list of pairs, or an array (pairs, 2); InputError if one is no pair of strings."""
    shape: tuple[int, ...] = tuple(getattr(pairs, "shape", ()))
    rows = pairs.tolist() if len(shape) == 2 and shape[1] == 2 else read_column(pairs, name)
    for row, pair in enumerate(rows):
        _require_two(pair, f"{name}: row {row}")
    first, second = ([list(pair)[side] for pair in rows] for side in (0, 1))
    _strings(first, f"{name}, first sentences")
    _strings(second, f"{name}, second sentences")
    return list(zip(first, second, strict=True))


def read_labels(labels: Any, rows: int, name: str = "the labels", classes: int = 1) -> list[Any]:
    """Returns the labels of `rows` texts, of one type: strings, numbers or booleans.

    Raises InputError if there are more or fewer labels than texts, some are missing, their types
    are mixed or not possible, or fewer than `classes` of them differ.
    """
    values = _read_targets(labels, rows, name)
    kinds = {_kind(value) for value in values}
    if len(kinds) > 1:
        examples = [next(value for value in values if _kind(value) == kind) for kind in kinds]
        shown = " and ".join(sorted(repr(value) for value in examples))
        raise InputError(f"{name} are of mixed types, such as {shown}; expected one type.")
    if kinds - {"string", "number", "boolean"}:
        raise InputError(f"{name} are of the type {kinds.pop()}; expected strings or numbers.")
    if len(set(values)) < classes:
        raise InputError(
            f"{name} are {dict(Counter(values))}; expected {classes} or more different ones."
        )
    return values


def label_names(labels: Sequence[Any], name: str = "the labels") -> list[str]:
    """Returns labels of `read_labels` as strings: 1, 1.0 and True are "1", "1" and "true".

    Raises InputError for an empty string or a number with decimals.
    """
    kind = _kind(labels[0]) if labels else "string"
    if kind == "boolean":
        return [str(label).lower() for label in labels]
    if kind == "number":
        fraction = next((label for label in labels if label != label // 1), None)
        if fraction is not None:
            raise InputError(
                f"{name} contain {fraction!r}; expected whole numbers. To learn scores: "
                'task="score".'
            )
        return [str(int(label)) for label in labels]
    empty = [row for row, label in enumerate(labels) if not label.strip()]
    if empty:
        raise InputError(f"{name} have {len(empty):,} empty strings (rows {_listed(empty)}).")
    return [label.strip() for label in labels]


def read_scores(scores: Any, rows: int, name: str = "the scores") -> list[float]:
    """Returns scores as a list of finite numbers, one for each of `rows` texts."""
    values = _read_targets(scores, rows, name)
    for row, value in enumerate(values):
        if _kind(value) != "number" or not math.isfinite(value):
            raise InputError(f"{name}: row {row} is {value!r}; expected a finite number.")
    return [float(value) for value in values]


def _read_targets(targets: Any, rows: int, name: str) -> list[Any]:
    values = read_column(targets, name)
    if len(values) != rows:
        raise InputError(f"{name}: {len(values):,} for {rows:,} texts; expected one for each.")
    _require_none_missing(values, name, "with their texts")
    return values


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or the missing value of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


def _require_none_missing(values: Sequence[Any], name: str, hint: str) -> None:
    missing = [row for row, value in enumerate(values) if is_missing(value)]
    if missing:
        raise InputError(
            f"{name} have {len(missing):,} missing values (rows {_listed(missing)}); leave these "
            f"rows out, {hint}."
        )


def _strings(values: Sequence[Any], name: str) -> list[str]:
    _require_none_missing(values, name, 'or make them empty strings (pandas: .fillna(""))')
    return [require_text(value, f"{name}: row {row}: ") for row, value in enumerate(values)]


def _require_two(pair: object, place: str) -> None:
    if isinstance(pair, str) or not isinstance(pair, Collection) or len(pair) != 2:
        raise InputError(
            f"{place} is {pair!r}; expected two sentences. Two columns are joined by "
            "list(zip(first, second))."
        )


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, Real) else type(value).__name__


def _listed(rows: Sequence[int]) -> str:
    dots = ", ..." if len(rows) > MAX_NAMED_ROWS else ""
    return ", ".join(map(str, rows[:MAX_NAMED_ROWS])) + dots
