"""tokenizer.json: damaged, of another model, or with other rules."""

from __future__ import annotations

from pathlib import Path

import pytest
import tokenizers
from tokenizers import models

from genpool.text import WordTokenizer
from genpool.text.vocabulary import SPECIAL_WORDS
from tests.helpers.saved_folders import change_json, refusal


@pytest.mark.parametrize("content", [b"", b"{}", b"<html>", b"{" * 1000, b"\xff" * 1000])
def test_a_damaged_tokenizer_is_refused(folder: Path, content: bytes) -> None:
    (folder / "tokenizer.json").write_bytes(content)
    message = refusal(folder)
    assert message.startswith(f"{folder / 'tokenizer.json'} cannot be used: ")


def test_a_tokenizer_that_is_cut_off_is_refused(folder: Path) -> None:
    path = folder / "tokenizer.json"
    path.write_bytes(path.read_bytes()[:-20])
    assert "cannot be read" in refusal(folder)


def test_a_tokenizer_of_another_model_is_refused(folder: Path) -> None:
    foreign = WordTokenizer("whitespace").to_tokenizers({"[UNK]": 0, "dog": 1}, "[UNK]")
    foreign.save(str(folder / "tokenizer.json"))
    assert "a vocabulary starts with ('<pad>', '<unk>', '<s>', '</s>')" in refusal(folder)


def test_a_tokenizer_without_rules_is_refused(folder: Path) -> None:
    words = {word: number for number, word in enumerate(SPECIAL_WORDS)}
    bare = tokenizers.Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    bare.save(str(folder / "tokenizer.json"))
    assert "does not say how to split a sentence" in refusal(folder)


def test_a_tokenizer_with_rules_of_its_own_is_refused(folder: Path) -> None:
    rules = {"type": "Split", "pattern": {"String": "-"}, "behavior": "Removed", "invert": False}
    change_json(folder / "tokenizer.json", "pre_tokenizer", rules)
    expected = "pre_tokenizer is 'Split'; expected that of the rules penn, parts, whitespace"
    assert expected in refusal(folder)
