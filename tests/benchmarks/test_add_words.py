"""More words for an encoder of n-grams: nothing changes until they are trained."""

from __future__ import annotations

import numpy as np

from benchmarks.release.add_words import with_more_words
from genpool import SentenceEncoder
from genpool.text.vocabulary import UNKNOWN


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
