"""The example that readers give."""

from __future__ import annotations

import dataclasses

import pytest

from genpool.data import Example


def test_only_label_and_first_sentence_are_needed():
    example = Example("yes", "A man sleeps.")
    assert (example.second, example.genre, example.id, example.score) == (None,) * 4
    assert example.tokenized is False


def test_an_example_cannot_be_changed_or_given_other_fields():
    example = Example("yes", "A man sleeps.")
    with pytest.raises(dataclasses.FrozenInstanceError):
        example.label = "no"  # type: ignore[misc]
    assert not hasattr(example, "__dict__")


def test_equal_content_is_the_same_example():
    assert {Example("a", "b", "c"), Example("a", "b", "c")} == {Example("a", "b", "c")}
