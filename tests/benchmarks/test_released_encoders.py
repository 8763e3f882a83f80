"""Encoders that are averaged, or have other words: kept words keep their vectors."""

from __future__ import annotations

import copy

import numpy as np
import torch

from benchmarks.release.add_words import with_more_words
from benchmarks.release.average_encoders import averaged
from benchmarks.release.make_embedded import with_words
from genpool import SentenceEncoder
from genpool.text.vocabulary import UNKNOWN


def test_every_weight_is_the_weighted_mean() -> None:
    first = SentenceEncoder.from_pretrained()
    second = copy.deepcopy(first)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in second.parameters():
            weights.add_(torch.randn(weights.shape, generator=generator))
    expected = {
        name: 0.6 * tensor.numpy().astype(np.float64) + 0.4 * second.state_dict()[name].numpy()
        for name, tensor in first.state_dict().items()
    }
    for name, tensor in averaged(first, second, 0.6).state_dict().items():
        np.testing.assert_allclose(tensor.numpy(), expected[name], atol=1e-6)


def test_a_new_word_has_the_vector_that_its_ngrams_gave_it() -> None:
    encoder = SentenceEncoder.from_pretrained()
    old = encoder.text.vocabulary
    words = ["dog", "", "quibblefrobnic", "zyxvorptang", "plonkwazzle"]
    assert [old.id(word) == UNKNOWN for word in words] == [False, True, True, True, True]
    wider = with_more_words(encoder, words, len(old) + 2)
    assert wider.text.vocabulary.words[-2:] == ("quibblefrobnic", "zyxvorptang")
    assert wider.text.vocabulary.id("plonkwazzle") == UNKNOWN
    sentences = ["A quibblefrobnic dog sees Zyxvorptang.", "plonkwazzle", "A man is eating."]
    np.testing.assert_allclose(wider.encode(sentences), encoder.encode(sentences), atol=1e-5)


def test_fewer_words_leave_sentences_of_kept_words_as_they_are() -> None:
    encoder = SentenceEncoder.from_pretrained()
    old = encoder.text.vocabulary
    rare = old.words[-1]
    smaller = with_words(encoder, [rare], 1000)
    words = smaller.text.vocabulary.words
    # The needed word, however rare, and then the most frequent ones.
    assert (len(words), words[-1]) == (1000, rare)
    assert words[:-1] == old.words[:999]
    sentences = [" ".join(words[500:510]), f"{words[20]} {rare}"]
    np.testing.assert_allclose(smaller.encode(sentences), encoder.encode(sentences), atol=1e-5)
