"""Training from a model with n-grams: a new word starts where its n-grams put it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import torch

from genpool import SentenceEncoder
from genpool.config import EmbeddingSettings, ModelSettings, Part
from genpool.text import TextPipeline, Vocabulary, WordTokenizer
from genpool.text.vocabulary import SPECIAL_WORDS, CharacterNgrams
from genpool.training.start_model import start_encoder


def test_a_new_word_starts_with_the_vector_of_its_ngrams() -> None:
    text = TextPipeline(
        WordTokenizer("parts", folding=True),
        Vocabulary([*SPECIAL_WORDS, "dog", "runs"], folding=True),
        CharacterNgrams(60, (3, 4)),
    )
    settings = ModelSettings(
        embedding=EmbeddingSettings(
            word_dim=5, characters=False, ngram_buckets=60, ngram_sizes=(3, 4), dropout=0.0
        ),
        encoder=Part("bilstm", {"hidden_dim": 4, "layers": 1}),
        pooling=Part("mean"),
    )
    torch.manual_seed(0)
    start = SentenceEncoder(text, settings).eval()
    for parameter in start.parameters():
        torch.nn.init.normal_(parameter)
    counts = Counter({"Wúg": 3, "dog": 2, "WUG": 1, "once": 1})
    encoder, _ = start_encoder(start, start.settings, counts, counts, 2, {})
    words = encoder.text.vocabulary.words
    assert words[4:] == ("dog", "wug")  # one entry for all its forms; "once" is too rare
    assert encoder.text.vocabulary.folding
    sentences = ["the dog wug", "WÜG once"]
    assert np.abs(encoder.eval().encode(sentences) - start.encode(sentences)).max() < 1e-6
    unknown = encoder.embedding.words[encoder.text.vocabulary.id("wug")]
    ids = torch.tensor(start.text.characters.ids_of("wug"))
    assert start.embedding.backing is not None
    expected = start.embedding.backing.table[ids].sum(dim=0) / len(ids) ** 0.5
    assert torch.allclose(unknown, expected, atol=1e-6)
