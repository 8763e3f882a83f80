"""What tokenizer.json may contain: exactly the kinds of parts that genpool writes.

The `tokenizers` library knows many more. Some of them run for minutes on a short text (a regular
expression of a stranger) or end the process (damaged tables): they are refused before anything is
built, and the file itself never reaches the library.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from tokenizers import Regex, pre_tokenizers

from genpool.errors import ConfigError
from genpool.text import penn
from genpool.text.folding import normalizer

#: the regular expressions of all versions of genpool; an earlier one stays when the rules change
KNOWN_PATTERNS = (penn.PATTERN, penn.SPACES, penn.PARTS)
BEHAVIORS = {
    "Removed": "removed",
    "Isolated": "isolated",
    "MergedWithPrevious": "merged_with_previous",
    "MergedWithNext": "merged_with_next",
    "Contiguous": "contiguous",
}
#: splits that follow each other, and characters of a text that one splits at
MAX_SPLITS, MAX_DELIMITER_CHARACTERS = 16, 64
#: parts of the file that genpool leaves empty
EMPTY_PARTS = ("truncation", "padding", "added_tokens", "post_processor", "decoder")


class StoredTokenizer(NamedTuple):
    """The content of tokenizer.json: the ids of the words, and how to split a sentence."""

    vocabulary: dict[str, int]
    pre_tokenizer: pre_tokenizers.PreTokenizer


def read_tokenizer(content: bytes | str) -> StoredTokenizer:
    """Returns the content of a tokenizer.json that genpool wrote.

    Args:
        content: the file.

    Raises:
        ConfigError: it is not JSON, or contains other parts than genpool writes.
    """
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
    return StoredTokenizer(_vocabulary(parts.get("model")), _splitting(parts.get("pre_tokenizer")))


def _vocabulary(model: Any) -> dict[str, int]:
    """Returns the ids of the words; whether they are 0 ... n - 1 is checked by `Vocabulary`."""
    if not isinstance(model, dict) or model.get("type", "WordLevel") != "WordLevel":
        raise _refused("model", model, "a WordLevel model")
    words = model.get("vocab")
    # bool is a kind of int.
    if not isinstance(words, dict) or not set(map(type, words.values())) <= {int}:
        raise _refused("model.vocab", words, "the id of every word")
    if not _is_encodable("".join(words)):
        raise ConfigError("a word of model.vocab has half of a surrogate pair.")
    return words


def _splitting(part: Any) -> pre_tokenizers.PreTokenizer:
    if part is None:
        raise ConfigError(
            "it has no pre_tokenizer, so it does not say how to split a sentence; expected that of "
            "WordTokenizer(rules).to_tokenizers(...)."
        )
    return _sequence(part) if _is_sequence(part) else _split(part)


def _is_sequence(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "Sequence"


def _sequence(part: dict[str, Any], inside: bool = False) -> pre_tokenizers.PreTokenizer:
    """A sequence of splits; one of them may be a sequence itself, as in the rules "parts"."""
    splits = part.get("pretokenizers")
    if not isinstance(splits, list) or not 1 <= len(splits) <= MAX_SPLITS:
        raise _refused("pre_tokenizer", splits, f"1 to {MAX_SPLITS} of type Split")
    return pre_tokenizers.Sequence(
        [
            _sequence(split, inside=True) if _is_sequence(split) and not inside else _split(split)
            for split in splits
        ]
    )


def _split(part: Any) -> pre_tokenizers.PreTokenizer:
    if not isinstance(part, dict) or part.get("type") != "Split":
        raise _refused("pre_tokenizer", part, "type Split, or a Sequence of them")
    behavior, invert = part.get("behavior"), part.get("invert", False)
    if not isinstance(behavior, str) or behavior not in BEHAVIORS or not isinstance(invert, bool):
        raise _refused("pre_tokenizer", part, f"a behavior of {', '.join(BEHAVIORS)}")
    return pre_tokenizers.Split(_pattern(part.get("pattern")), BEHAVIORS[behavior], invert)


def _pattern(part: Any) -> str | Regex:
    """A text to split at, or one of genpool's regular expressions."""
    kind, value = next(iter(part.items())) if isinstance(part, dict) and len(part) == 1 else ("", 0)
    if kind == "Regex" and value in KNOWN_PATTERNS:
        return Regex(value)
    if isinstance(value, str) and kind == "String" and _is_delimiter(value):
        return value
    raise _refused(
        "pre_tokenizer",
        part,
        "a String, or a regular expression of genpool (those of others could run for minutes)",
    )


def _is_delimiter(text: str) -> bool:
    return 1 <= len(text) <= MAX_DELIMITER_CHARACTERS and _is_encodable(text)


def _is_encodable(text: str) -> bool:
    """Whether the library can be passed a text: half of a surrogate pair is none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refused(name: str, value: Any, expected: str) -> ConfigError:
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        value = value["type"]
    shown = repr(value)
    shown = shown if len(shown) < 80 else f"{shown[:80]} ..."
    return ConfigError(f"{name} is {shown}; expected {expected}. Was it written by genpool?")
