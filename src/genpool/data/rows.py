"""What a row must be before it is an example, and what becomes of one that is not.

A row that cannot be used is a `BadRow` with a short reason, which is counted, and a sentence for
people. It travels as a value inside a `Record` until the reader decides: stop there, or skip it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from genpool.errors import unknown_name

#: a value that is quoted in a message is cut to this many characters
_QUOTED_CHARACTERS = 60


class BadRow(Exception):
    """A row that cannot be used, and why."""

    def __init__(self, reason: str, problem: str) -> None:
        self.reason, self.problem = reason, problem
        super().__init__(problem)


class DroppedRow(BadRow):
    """A row that the data set itself marks as not to be used: counted, never an error."""


class Record(NamedTuple):
    """One row of a file: its columns by name, or what is wrong with it.

    Attributes:
        path: the file, for messages.
        line: the line on which the row begins, from 1.
        values: the columns by name, or a `BadRow`.
        offset: the offset of that line in the file; -1 where it is not known.
    """

    path: Path | str
    line: int
    values: Mapping[str, object] | BadRow
    offset: int = -1


def parse_text(values: Mapping[str, object], column: str, may_be_empty: bool = False) -> str:
    """Returns the text of a column; raises BadRow if it is not text, or empty and may not be."""
    value = _require_field(values, column)
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        kind = type(value).__name__
        raise BadRow("not text", f"column {column!r} holds a {kind}; expected text")
    text = "" if _is_missing(value) else str(value)
    if not text.strip() and not may_be_empty:
        raise BadRow("empty side", f"column {column!r} is empty; expected text")
    if not text.isascii():
        require_encodable(text, column)
    return text


def parse_label(
    values: Mapping[str, object], column: str, allowed: Sequence[str] | None = None
) -> str:
    """Returns the label of a column; raises BadRow if it is empty or not one of `allowed`."""
    label = to_text(_require_field(values, column))
    if label is None:
        raise BadRow("no label", f"column {column!r} is empty; expected a label")
    if allowed is not None and label not in allowed:
        raise BadRow("unknown label", unknown_name("label", label, allowed))
    return label


def parse_score(values: Mapping[str, object], column: str) -> float:
    """Returns the number in a column; raises BadRow if it is not a finite number."""
    value = _require_field(values, column)
    try:
        score = float(value)  # type: ignore[arg-type]
    # JSON has integers of any size: one that no float can hold is an OverflowError.
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score):
        quoted = repr(value)
        if len(quoted) > _QUOTED_CHARACTERS:
            quoted = f"{quoted[:_QUOTED_CHARACTERS]}... ({len(quoted):,} characters)"
        raise BadRow("bad score", f"column {column!r} holds {quoted}; expected a finite number")
    return score


def to_text(value: object) -> str | None:
    """Returns a label, genre or id as text: 5, 5.0 and " 5 " are "5"; an empty value is None."""
    if _is_missing(value):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() or None


def _require_field(values: Mapping[str, object], column: str) -> object:
    # Only JSON can lack one: each of its lines names its own columns.
    if column not in values:
        fields = ", ".join(map(repr, values)) or "none"
        raise BadRow("missing field", f"there is no field {column!r}; this line has: {fields}")
    return values[column]


def _is_missing(value: object) -> bool:
    # Tables written by pandas mark an empty text cell with the number NaN.
    return value is None or (isinstance(value, float) and math.isnan(value))


def require_encodable(text: str, column: str) -> None:
    """Raises BadRow if a text cannot be written as UTF-8."""
    # JSON can spell half of a surrogate pair ("\ud83d"), which no tokenizer or file accepts.
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        broken = f"U+{ord(text[error.start]):04X}"
        problem = f"column {column!r} holds half a character ({broken}) at position {error.start}"
        raise BadRow("bad UTF-8", problem) from None
