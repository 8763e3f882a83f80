"""What tokenizer.json may contain: exactly the parts that genpool writes.

The `tokenizers` library knows many more. Some of them run for minutes on a short text (a regular
expression of a stranger) or end the process (damaged tables): they are refused before anything is
built, and the file itself never reaches the library.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from genpool.errors import ConfigError
from genpool.text.tokenizer import RULES, normalizer

#: parts of the file that genpool leaves empty
EMPTY_PARTS = ("truncation", "padding", "added_tokens", "post_processor", "decoder")


class StoredTokenizer(NamedTuple):
    """The content of tokenizer.json: the ids of the words, and the name of the rules."""

    vocabulary: dict[str, int]
    rules: str


def read_tokenizer(content: bytes | str) -> StoredTokenizer:
    """Returns the content of a tokenizer.json; ConfigError where genpool did not write it."""
    try:
        parts = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"it cannot be read as JSON: {error}") from None
    if not isinstance(parts, dict):
        raise ConfigError(f"it cannot be read: it is a {type(parts).__name__}, expected a dict.")
    for name in EMPTY_PARTS:
        if parts.get(name):
            raise _refused(name, parts[name], "none")
    # It is compared, not used: a tokenizer with folding has one of its own.
    if parts.get("normalizer") not in (None, json.loads(normalizer().__getstate__())):
        raise _refused("normalizer", parts["normalizer"], "none, or that of folding")
    return StoredTokenizer(_vocabulary(parts.get("model")), _rules(parts.get("pre_tokenizer")))


def _vocabulary(model: Any) -> dict[str, int]:
    """Returns the ids of the words; whether they are 0 ... n - 1 is checked by `Vocabulary`."""
    if not isinstance(model, dict) or model.get("type", "WordLevel") != "WordLevel":
        raise _refused("model", model, "a WordLevel model")
    words = model.get("vocab")
    # bool is a kind of int.
    if not isinstance(words, dict) or not set(map(type, words.values())) <= {int}:
        raise _refused("model.vocab", words, "the id of every word")
    try:
        "".join(words).encode()
    except UnicodeEncodeError:
        raise ConfigError("a word of model.vocab has half of a surrogate pair.") from None
    return words


def _rules(part: Any) -> str:
    if part is None:
        raise ConfigError(
            "it has no pre_tokenizer, so it does not say how to split a sentence; expected that of "
            "WordTokenizer(rules).to_tokenizers(...)."
        )
    splits = _splits(part)
    for name, pre_tokenizer in RULES.items():
        if splits == _splits(json.loads(pre_tokenizer().__getstate__())):
            return name
    raise _refused("pre_tokenizer", part, f"that of the rules {', '.join(RULES)}")


def _splits(part: Any, depth: int = 2) -> list[Any]:
    """Returns what the splits of a pre-tokenizer do, those of a sequence one after the other.

    Only what genpool sets is compared: a later version of the library may write more.
    """
    if not isinstance(part, dict):
        return [part]
    if depth and isinstance(part.get("pretokenizers"), list):
        return [split for inner in part["pretokenizers"] for split in _splits(inner, depth - 1)]
    return [[part.get(name) for name in ("type", "pattern", "behavior", "invert")]]


def _refused(name: str, value: Any, expected: str) -> ConfigError:
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        value = value["type"]
    shown = repr(value)
    shown = shown if len(shown) < 80 else f"{shown[:80]} ..."
    return ConfigError(f"{name} is {shown}; expected {expected}. Was it written by genpool?")
