"""The columns that an index keeps beside its sentences: a JSON array of values per row.

Lines of JSON, because any block of them is parsed in one call: a million rows take a second.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence

Scalar = str | int | float | bool | None


def to_scalar(value: object) -> Scalar:
    """Returns a value of a table as JSON has it; a date, for example, becomes text.

    What tables have for an empty cell, None and NaN, is None.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value if math.isfinite(value) else str(value)
    return str(value)


def encode_rows(rows: Iterable[Iterable[object]]) -> list[bytes]:
    """Returns a line for the values of each row."""
    lines = (json.dumps([to_scalar(value) for value in row]) + "\n" for row in rows)
    return [line.encode("ascii") for line in lines]


def decode_rows(data: bytes, rows: int, columns: int) -> list[list[Scalar]]:
    """Returns the values of consecutive rows.

    Args:
        data: their lines.
        rows: how many they are.
        columns: how many values each row has.

    Raises:
        ValueError: the lines are damaged.
    """
    values = json.loads(b"[" + data.rstrip(b"\n").replace(b"\n", b",") + b"]")
    if len(values) != rows or any(
        type(row) is not list or len(row) != columns or _has_containers(row) for row in values
    ):
        raise ValueError(f"expected {rows} rows of {columns} values")
    return list(values)


def _has_containers(row: Sequence[object]) -> bool:
    return any(isinstance(value, list | dict) for value in row)
