"""Words without an entry get their vectors from n-grams, known words only when they are hidden."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from genpool import SentenceEncoder
from genpool.config import EmbeddingSettings, ModelSettings, Part, ngrams_of
from genpool.embedding import TokenEmbedding
from genpool.errors import ConfigError
from genpool.inference.quick import QuickEncoder
from genpool.text import Characters, TextPipeline, Vocabulary, WordTokenizer
from genpool.text.vocabulary import SPECIAL_WORDS, CharacterNgrams

NGRAMS = CharacterNgrams(40, sizes=(3, 4))
TEXT = TextPipeline(
    WordTokenizer("whitespace"), Vocabulary([*SPECIAL_WORDS, "dog", "runs"], folding=True), NGRAMS
)


def lively(hidden_words: float = 0.0) -> TokenEmbedding:
    torch.manual_seed(0)
    embedding = TokenEmbedding(
        6, word_dim=5, dropout=0.0, ngrams=len(NGRAMS), hidden_words=hidden_words
    )
    assert embedding.backing is not None
    torch.nn.init.normal_(embedding.words)
    torch.nn.init.normal_(embedding.backing["table"])
    return embedding


def by_loop(embedding: TokenEmbedding, word: str) -> np.ndarray:
    """The sum of the rows of the word's n-grams, divided by the root of their number."""
    assert embedding.backing is not None
    table = embedding.backing["table"].detach().numpy()
    ids = NGRAMS.ids_of(word)
    total = np.zeros(5)
    for number in ids:
        total += table[number]
    return total / np.sqrt(len(ids))


def test_the_vector_of_an_unknown_word_by_loops() -> None:
    embedding = lively()
    vectors = embedding(TEXT.batch([["dog", "wugs", "runs"], ["blicket"]])).detach().numpy()
    words = embedding.words.detach().numpy()
    assert np.allclose(vectors[0, 0], words[4]) and np.allclose(vectors[0, 2], words[5])
    assert np.abs(vectors[0, 1] - by_loop(embedding, "wugs")).max() < 1e-6
    assert np.abs(vectors[1, 0] - by_loop(embedding, "blicket")).max() < 1e-6


def test_known_words_are_hidden_in_training_only() -> None:
    embedding = lively(hidden_words=0.5)
    table = TEXT.table(spell_known=True)
    batch = table.batch([table.row(["dog", "runs"], sentence_ends=False)])
    words = embedding.words.detach().numpy()
    seen = {"entry": 0, "n-grams": 0}
    embedding.train()
    for _ in range(60):
        vector = embedding(batch)[0, 0].detach().numpy()
        is_entry = np.allclose(vector, words[4])
        assert is_entry or np.abs(vector - by_loop(embedding, "dog")).max() < 1e-6
        seen["entry" if is_entry else "n-grams"] += 1
    assert min(seen.values()) > 10
    embedding.eval()
    assert all(np.allclose(embedding(batch)[0, 0].detach(), words[4]) for _ in range(5))


def test_gradients_reach_the_ngrams_of_unknown_words_and_no_others() -> None:
    embedding = lively()
    embedding(TEXT.batch([["dog", "wug"]])).sum().backward()
    assert embedding.backing is not None and embedding.backing["table"].grad is not None
    rows = embedding.backing["table"].grad.abs().sum(dim=1).nonzero().flatten().tolist()
    assert rows == sorted(set(NGRAMS.ids_of("wug")))


def settings() -> ModelSettings:
    return ModelSettings(
        embedding=EmbeddingSettings(
            word_dim=4, characters=False, ngram_buckets=40, ngram_sizes=(3, 4), dropout=0.0
        ),
        encoder=Part("bilstm", {"hidden_dim": 3, "layers": 1}),
        pooling=Part("generalized", {"heads": 2}),
    )


def test_different_unknown_words_differ_in_every_form_of_the_model(tmp_path) -> None:
    torch.manual_seed(0)
    model = SentenceEncoder.from_settings(TEXT, settings()).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    sentences = ["dog wug runs", "dog blicket runs", "wug", "", "DOG wüg runs"]
    vectors = model.encode(sentences)
    assert np.abs(vectors[0] - vectors[1]).max() > 0.01
    assert np.abs(vectors[0] - vectors[4]).max() < 1e-6
    assert np.abs(QuickEncoder(model).encode(sentences) - vectors).max() < 1e-5
    model.save_pretrained(tmp_path / "model")
    loaded = SentenceEncoder.from_pretrained(tmp_path / "model")
    assert np.array_equal(loaded.encode(sentences), vectors)
    assert isinstance(loaded.text.characters, CharacterNgrams)
    assert loaded.text.characters.sizes == (3, 4)


def test_text_and_settings_must_agree() -> None:
    without = TextPipeline(WordTokenizer(), Vocabulary.build({}), Characters(""))
    with pytest.raises(ConfigError, match=r"ngram_buckets is 40, but the text pipeline has 0"):
        SentenceEncoder.from_settings(without, settings())
    assert ngrams_of(EmbeddingSettings()) is None
