"""An encoder with more words: known words keep their states, others get predicted vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.release import widen_student
from benchmarks.release.widen_student import factor, ridge, sparse_ridge, widen
from genpool import SentenceEncoder
from genpool.config import EmbeddingSettings, ModelSettings, Part
from genpool.disk.row_cache import RowCache
from genpool.text import Characters, TextPipeline, Vocabulary, WordTokenizer, WordVectors
from genpool.text.vocabulary import SPECIAL_WORDS

RANDOM = np.random.default_rng(0)


def test_a_factor_of_full_rank_loses_nothing_and_a_small_one_the_least_directions() -> None:
    inputs = RANDOM.normal(size=(40, 6)).astype(np.float32)
    weights = RANDOM.normal(size=(9, 6)).astype(np.float32)
    importance = np.ones(40, np.float32)
    vectors, directions = factor(inputs, weights, importance, 6)
    assert np.abs(vectors @ directions.T - inputs @ weights.T).max() < 1e-4
    vectors, directions = factor(inputs, weights, importance, 3)
    singular = np.linalg.svd(inputs @ weights.T, compute_uv=False)
    error = np.linalg.norm(vectors @ directions.T - inputs @ weights.T)
    assert error == pytest.approx(np.sqrt((singular[3:] ** 2).sum()), rel=1e-4)


def test_both_ways_of_ridge_regression_are_equal() -> None:
    features = RANDOM.normal(size=(30, 8)).astype(np.float32)
    values = RANDOM.normal(size=(30, 2)).astype(np.float32)
    solution = ridge(features, values, 2.0)
    # at the minimum, the gradient is zero
    gradient = features.T @ (features @ solution - values) + 2.0 * solution
    assert np.abs(gradient).max() < 1e-3
    assert np.abs(sparse_ridge(features, values, 2.0, steps=20) - solution).max() < 1e-3


def test_known_words_keep_their_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(widen_student, "WORD_DIM", 7)
    monkeypatch.setattr(widen_student, "NGRAM_BUCKETS", 30)
    known = ["dog", "cat", "runs", "sleeps", "the", "park", "man", "eats", "a", "sits"]
    text = TextPipeline(
        WordTokenizer(), Vocabulary([*SPECIAL_WORDS, *known]), Characters("abcdefghijklmnoprstuw")
    )
    settings = ModelSettings(
        embedding=EmbeddingSettings(word_dim=5, character_maps=1, dropout=0.1),
        encoder=Part("bilstm", {"hidden_dim": 3, "layers": 1}),
        pooling=Part("generalized", {"heads": 2}),
    )
    torch.manual_seed(0)
    encoder = SentenceEncoder.from_settings(text, settings).eval()
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    words = [*known, "wug", "tove"]
    cache = RowCache(tmp_path, "a teacher", (4,))
    cache.append(words, RANDOM.normal(size=(12, 4)))
    glove = WordVectors({"dog": 0, "wug": 1}, RANDOM.normal(size=(2, 3)).astype(np.float32))
    wider = widen(encoder, words, cache, glove)
    sentences = ["the dog runs", "a man sits", "the cat sleeps"]
    # 8 inputs of 10 words less their mean are 7 dimensions or a little more: next to nothing lost
    cosines = [
        float(np.dot(one, two) / np.linalg.norm(one) / np.linalg.norm(two))
        for one, two in zip(encoder.encode(sentences), wider.encode(sentences), strict=True)
    ]
    assert min(cosines) > 0.99
    assert np.abs(wider.encode("the wug") - wider.encode("the tove")).max() > 1e-3
    assert np.array_equal(wider.encode("THE DÓG"), wider.encode("the dog"))
