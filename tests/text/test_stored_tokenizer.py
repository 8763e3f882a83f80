"""tokenizer.json: parts that genpool does not write are refused before they are built."""

from __future__ import annotations

import json
from typing import Any

import pytest

from genpool.errors import ConfigError
from genpool.text import WordTokenizer, penn
from genpool.text.tokenizer import EMPTY_PARTS, read_tokenizer

WORDS = {"<pad>": 0, "<unk>": 1, "dog": 2}
SPLIT: dict[str, Any] = {
    "type": "Split",
    "pattern": {"Regex": penn.SPACES},
    "behavior": "Removed",
    "invert": False,
}


def content(rules: str = "penn", **parts: object) -> str:
    saved = json.loads(WordTokenizer(rules).to_tokenizers(WORDS).to_str())
    return json.dumps({**saved, **parts})


def split_with(**changes: object) -> dict[str, Any]:
    return {**SPLIT, **changes}


@pytest.mark.parametrize("rules", ["penn", "parts", "whitespace"])
def test_what_genpool_writes_is_read_also_with_what_a_later_library_adds(rules: str) -> None:
    assert read_tokenizer(content(rules)) == (WORDS, rules)
    stored = read_tokenizer(content(pre_tokenizer=split_with(added_by_the_library=3)))
    assert stored.rules == "whitespace"


@pytest.mark.parametrize(
    "parts",
    [
        # 28 seconds on 900 characters, had it been built
        {"pre_tokenizer": split_with(pattern={"Regex": "(a*)*b"})},
        {"pre_tokenizer": split_with(pattern={"String": "\ud800"})},
        {"pre_tokenizer": split_with(behavior=["Removed"])},
        {"pre_tokenizer": split_with(invert=3)},
        # a panic of the library, which `except Exception` does not catch
        {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": []}},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [SPLIT] * 2}},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": 3}},
        {"pre_tokenizer": "Split"},
        {"pre_tokenizer": None},
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}},
        {"normalizer": {"type": "Lowercase"}},
        *({name: {"type": "WordPiece"}} for name in EMPTY_PARTS),
        {"model": {"type": "BPE", "vocab": WORDS, "merges": []}},
        {"model": None},
        *({"model": {"vocab": words}} for words in (["dog"], {"dog": True}, {"dog\ud800": 0})),
    ],
    ids=lambda parts: json.dumps(parts)[:70],
)
def test_every_other_part_is_refused_by_name(parts: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(parts))):
        read_tokenizer(content(**parts))


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "[" * 100_000, b"\xff\xfe\x00"])
def test_what_is_no_dict_of_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(ConfigError, match="it cannot be read"):
        read_tokenizer(text)
