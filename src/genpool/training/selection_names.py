"""The values of a selection: their texts on the command line and the names of their folders."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

#: what may be in a folder's name on every system; upper case may not, because on some systems two
#: names that differ in case alone are the same
_SIMPLE = re.compile(r"[a-z0-9_+-](?:[a-z0-9._+-]*[a-z0-9_+-])?")
_UNSAFE = re.compile(r"[^a-z0-9_+-]+")
MAX_VALUE_CHARACTERS = 40
MAX_NAME_CHARACTERS = 150
HASH_CHARACTERS = 8


def value_texts(values: str) -> list[str]:
    """Returns the values of a list; commas within brackets or quotes do not separate.

    "1, 0.1" -> ["1", "0.1"]; "[1,3], [5]" -> ["[1,3]", "[5]"]
    """
    pieces = re.findall(r"""(?:\[[^\]]*\]|"[^"]*"|'[^']*'|[^,])+""", values)
    return [piece.strip() for piece in pieces if piece.strip()]


def folder_name(values: Mapping[str, str]) -> str:
    """Returns a folder's name for a combination of values, different for every combination.

    "penalty.weight=0.1,pooling.heads=5" for simple values. Where a value holds characters that some
    system does not allow, a hash of it takes their place.
    """
    parts = [f"{key}={_safe(value)}" for key, value in values.items()]
    name = ",".join(parts)
    if len(name) <= MAX_NAME_CHARACTERS:
        return name
    return f"{name[:MAX_NAME_CHARACTERS].rstrip('.')}-{_hash(name)}"


def _safe(value: str) -> str:
    if len(value) <= MAX_VALUE_CHARACTERS and _SIMPLE.fullmatch(value):
        return value
    slug = _UNSAFE.sub("-", value.lower())[-MAX_VALUE_CHARACTERS:].strip("-")
    return f"{slug}-{_hash(value)}" if slug else _hash(value)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARACTERS]
