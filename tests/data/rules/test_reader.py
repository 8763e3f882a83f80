"""The generated corpus as a data set."""

from __future__ import annotations

import pytest

from genpool.data import RulesReader
from genpool.data.rules.cases import LABELS
from genpool.data.rules.generate import generate
from genpool.errors import ConfigError, DataError


def test_the_splits_have_the_sizes_asked_for_and_share_no_pair() -> None:
    reader = RulesReader(sizes=(60, 30, 15))
    assert reader.splits() == ["train", "dev", "test"]
    read = {split: list(reader.read(split)) for split in reader.splits()}
    assert {split: len(examples) for split, examples in read.items()} == {
        "train": 60,
        "dev": 30,
        "test": 15,
    }
    pairs = {split: {(example.first, example.second) for example in read[split]} for split in read}
    assert not pairs["train"] & pairs["dev"]
    assert not pairs["train"] & pairs["test"]
    assert not pairs["dev"] & pairs["test"]


def test_each_split_is_the_corpus_of_its_own_seed_with_the_rule_as_genre() -> None:
    reader = RulesReader(sizes=(6, 9, 12), seed=5)
    for split, size, seed in (("train", 6, 5), ("dev", 9, 6), ("test", 12, 7)):
        found = [
            (example.label, example.first, example.second, example.genre)
            for example in reader.read(split)
        ]
        assert found == [tuple(pair) for pair in generate(size, seed)]


def test_the_labels_are_known_before_anything_is_read() -> None:
    reader = RulesReader()
    assert reader.labels == LABELS
    assert reader.is_pair
    assert reader.skipped == {}


def test_examples_are_raw_text_for_the_tokenizer() -> None:
    example = next(RulesReader(sizes=(3, 3, 3)).read("train"))
    assert not example.tokenized
    assert example.first.endswith(".")


@pytest.mark.parametrize("sizes", [(1, 2), (1, 2, 3, 4), (10, 0, 5), (-1, 2, 3)])
def test_sizes_that_make_no_sense_are_told(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match="expected three numbers of 1 or more"):
        RulesReader(sizes=sizes)


def test_another_split_is_told() -> None:
    with pytest.raises(DataError, match="Known: dev, test, train"):
        RulesReader().read("validation")


def test_the_wide_rules_are_an_option() -> None:
    reader = RulesReader(sizes=(30, 3, 3), rules="wide")
    found = [(example.label, example.first, example.second) for example in reader.read("train")]
    assert found == [pair[:3] for pair in generate(30, 0, "wide")]
    with pytest.raises(ConfigError, match=r"unknown rules 'all'. Known: core, wide"):
        RulesReader(rules="all")
