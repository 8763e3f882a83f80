"""Changes of bytes and of JSON: what damage, mistakes and malice do to a file."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

#: values that settings are replaced by
NASTY: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    7,
    40,
    1000,
    10**6,
    10**9,
    2**31,
    2**63,
    10**30,
    -(10**18),
    0.5,
    1e308,
    -0.0,
    1e-320,
    float("nan"),
    float("inf"),
    "",
    "a",
    "0",
    "\x00",
    "\ud800",
    "../../etc",
    "a" * 5000,
    "😀",
    [],
    [0],
    [1, 2, 3],
    [10**9],
    [[[[]]]],
    ["a", "a"],
    [1] * 300,
    {},
    {"name": "cnn"},
    {"name": "os.system"},
    {"": {}},
    "generalized",
    "scalar",
    "stacked-bilstm",
    "shortcut-stacked",
    "bilstm",
    "gru",
    "disan",
    "resan",
    "gumbel-tree",
    "gated",
    "max",
    "bag-of-words",
    "released",
    "gaussian",
]
#: pieces that are put into a file
PIECES = [
    b"\x00",
    b"\xff",
    b"\n",
    b"\r",
    b"\t",
    b'"',
    b"'",
    b",",
    b"{",
    b"}",
    b"[",
    b"<",
    b"&",
    b"<!--",
    b"]]>",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\xe2\x80\xa8",
    b"\\ud800",
    b"NaN",
    b"1e999",
    b"9" * 400,
    b"-",
    b"\x1a",
    b"label",
    b"\xc3",
    b'""""',
    b"(((",
]


def change_bytes(content: bytes, chance: random.Random) -> bytes:
    """Returns a file with one to four changes: flipped bits, cuts, insertions, repetitions."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        place = chance.randrange(len(data) + 1)
        length = chance.choice((1, 2, 5, 40, 300))
        kind = chance.randrange(7)
        if kind == 0 and data:
            data[place % len(data)] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del data[place:]
        elif kind == 2:
            del data[place : place + length]
        elif kind == 3:
            data[place:place] = chance.choice(PIECES)
        elif kind == 4:
            data[place : place + length] = bytes(length)
        elif kind == 5:
            data[place:place] = data[place : place + length]
        else:
            data[place : place + length] = chance.randbytes(length)
    return bytes(data)


def change_json(content: Any, chance: random.Random) -> Any:
    """Returns JSON content in which one to three values or keys are changed."""
    changed = copy.deepcopy(content)
    for _ in range(chance.choice((1, 1, 2, 3))):
        changed = _change_one(changed, chance)
    return changed


def to_json(content: Any) -> bytes:
    """Returns the file of a content, with surrogates and NaN as Python writes them."""
    return json.dumps(content).encode()


def _change_one(content: Any, chance: random.Random) -> Any:
    places = list(_places(content))
    if not places:
        return chance.choice(NASTY)
    parent, key = chance.choice(places)
    kind = chance.randrange(6)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, dict):
        parent[chance.choice(["", "name", "x", str(key) + "s", "auto_map"])] = parent.pop(key)
    elif kind == 2 and isinstance(parent[key], int | float):
        parent[key] = parent[key] * chance.choice([-1, 2, 1000, 0.5])
    elif kind == 3:
        other, name = chance.choice(places)
        parent[key] = copy.deepcopy(other[name])
    else:
        parent[key] = copy.deepcopy(chance.choice(NASTY))
    return content


def _places(content: Any) -> Any:
    """Yields (container, key) of all values; a few of those of a large container."""
    keys = list(content) if isinstance(content, dict) else list(range(len(content)))
    for key in keys if len(keys) <= 30 else keys[:15] + keys[-15:]:
        yield content, key
        if isinstance(content[key], dict | list):
            yield from _places(content[key])
