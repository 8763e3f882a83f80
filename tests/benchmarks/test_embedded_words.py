"""The measurements of words on the page of the embedded encoder, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.results_pages.embedded_words import (
    FORMS,
    cosines_of_forms,
    mean_cosine,
    share_without_entry,
    unknown_words,
)
from genpool.text import Characters, TextPipeline, Vocabulary, WordTokenizer
from genpool.text.vocabulary import SPECIAL_WORDS


def test_words_without_an_entry_are_counted_and_listed_once() -> None:
    vocabulary = Vocabulary([*SPECIAL_WORDS, "dog", "runs", "."])
    text = TextPipeline(WordTokenizer(), vocabulary, Characters(""))
    encoder: Any = SimpleNamespace(text=text)
    assert share_without_entry(encoder, ["A dog runs.", "Blicket runs"]) == 2 / 6
    assert share_without_entry(encoder, []) == 0
    sentences = ["Blicket dog Wuggers runs 12345 abc", "blicket toveses x-ray-like"]
    drawn = unknown_words(encoder, sentences, 9)
    assert sorted(drawn) == ["blicket", "toveses", "wuggers"]
    assert unknown_words(encoder, sentences, 2) == drawn[:2]


def test_the_mean_cosine_by_loops() -> None:
    vectors = np.random.default_rng(0).normal(size=(5, 3))
    cosines = [
        vectors[i] @ vectors[j] / np.linalg.norm(vectors[i]) / np.linalg.norm(vectors[j])
        for i in range(5)
        for j in range(5)
        if i != j
    ]
    found = mean_cosine(lambda texts: vectors[[int(text) for text in texts]], list("01234"))
    assert found == pytest.approx(np.mean(cosines))


def test_forms_are_compared_with_their_plain_form() -> None:
    def encode(texts: list[str]) -> np.ndarray:
        return np.array([[1.0, text.isascii()] for text in texts])

    cosines = cosines_of_forms(encode)
    assert cosines["upper case"] == pytest.approx(1.0)
    assert cosines["accents"] == pytest.approx(np.sqrt(0.5))
    assert all(plain.isascii() for _, plain in FORMS.values())
