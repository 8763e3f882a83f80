"""A sentence encoder with initial weights: its vocabulary from text, its word table from a file."""

from __future__ import annotations

from collections import Counter

import torch

from genpool.config import ModelSettings, ngrams_of
from genpool.errors import ConfigError, DataError, TrainingError
from genpool.model import SentenceEncoder
from genpool.text import (
    Characters,
    TextPipeline,
    Vocabulary,
    WordTokenizer,
    WordVectors,
    canonical,
    read_vectors,
    vector_table,
    wanted_words,
)
from genpool.training.settings import VectorSettings, VocabularySettings, frozen_random_table


def build_encoder(
    settings: ModelSettings,
    vocabulary_settings: VocabularySettings,
    vector_settings: VectorSettings,
    seed: int,
    word_counts: Counter[str],
    notes: dict[str, str],
) -> SentenceEncoder:
    """Returns an encoder with initial weights and, if there is a vector file, its word vectors.

    Args:
        settings: The model.
        vocabulary_settings: Which words have an entry.
        vector_settings: The vector file.
        seed: Decides the initial weights.
        word_counts: How often each word occurs in the training text.
        notes: Receives the size of the vocabulary and the coverage of the vectors.

    Raises:
        ConfigError: the word table would be random and frozen.
        DataError: the vectors have another dimension than the word table.
    """
    if problems := frozen_random_table(settings.embedding, vector_settings):
        raise ConfigError(problems)
    counts: Counter[str] = Counter()
    for word, count in word_counts.items():
        entry = canonical(word)
        counts[entry.lower() if vocabulary_settings.lower_case else entry] += count
    vectors = None
    if vector_settings.path and vocabulary_settings.vector_words:
        vectors = read_vectors(vector_settings.path)
    vocabulary = Vocabulary.build(
        counts,
        vocabulary_settings.minimum_count,
        vectors.rows if vectors else (),
        settings.text.lower_case_fallback,
        settings.text.folding,
    )
    characters = ngrams_of(settings.embedding) or Characters.build(vocabulary.words[4:])
    notes["vocabulary"] = f"{len(vocabulary):,} words, {len(characters):,} characters"
    text = TextPipeline(
        WordTokenizer(settings.text.rules, settings.text.folding),
        vocabulary,
        characters,
        settings.text.sentence_ends,
        settings.text.max_length,
    )
    encoder = _initial_encoder(text, settings, seed)
    if vector_settings.path:
        if vectors is None:
            fallback = vector_settings.lower_case_fallback
            vectors = read_vectors(vector_settings.path, only=wanted_words(vocabulary, fallback))
        notes["coverage"] = _fill_word_table(encoder, vectors, vector_settings, counts, seed)
    return encoder


def _initial_encoder(text: TextPipeline, settings: ModelSettings, seed: int) -> SentenceEncoder:
    torch.manual_seed(seed)
    try:
        return SentenceEncoder.from_settings(text, settings)
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, RuntimeError) and "alloc" not in str(error):
            raise
        raise TrainingError(
            f"the model does not fit into memory ({str(error).splitlines()[0]}). Choose smaller "
            "sizes, or fewer words: --set vocabulary.minimum_count=2"
        ) from error


def _fill_word_table(
    encoder: SentenceEncoder,
    vectors: WordVectors,
    settings: VectorSettings,
    counts: Counter[str],
    seed: int,
) -> str:
    """Copies the vectors into the word table; returns what they cover, in words."""
    dim = encoder.settings.embedding.word_dim
    if vectors.dim != dim:
        raise DataError(
            f"the vectors have {vectors.dim} dimensions, but embedding.word_dim is {dim}: "
            f"--set embedding.word_dim={vectors.dim}",
            settings.path,
        )
    table, coverage = vector_table(
        encoder.text.vocabulary, vectors, counts, seed, settings.std, settings.lower_case_fallback
    )
    with torch.no_grad():
        encoder.embedding.words.copy_(torch.from_numpy(table))  # (vocabulary, dim)
    return str(coverage)
