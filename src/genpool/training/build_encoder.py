"""A sentence encoder with fresh weights: its vocabulary from text, its word table from a file."""

from __future__ import annotations

from collections import Counter

import torch

from genpool.config import ModelSettings
from genpool.errors import DataError
from genpool.model import SentenceEncoder
from genpool.text import (
    Characters,
    TextPipeline,
    Vocabulary,
    WordTokenizer,
    canonical,
    read_vectors,
    vector_table,
    wanted_words,
)
from genpool.training.settings import VectorSettings, VocabularySettings


def build_encoder(
    settings: ModelSettings,
    choice: VocabularySettings,
    source: VectorSettings,
    seed: int,
    spelled: Counter[str],
    notes: dict[str, str],
) -> SentenceEncoder:
    """spelled: how often each word occurs in the training text. notes: gets what was done."""
    counts: Counter[str] = Counter()
    for word, count in spelled.items():
        counts[canonical(word).lower() if choice.lower_case else canonical(word)] += count
    everything = read_vectors(source.path) if source.path and choice.vector_words else None
    vocabulary = Vocabulary.build(
        counts, choice.minimum_count, everything.places if everything else ()
    )
    characters = Characters.build(vocabulary.words[4:])
    text = TextPipeline(
        WordTokenizer(settings.text.rules),
        vocabulary,
        characters,
        settings.text.sentence_ends,
        settings.text.max_length,
    )
    torch.manual_seed(seed)
    encoder = SentenceEncoder(text, settings)
    notes["vocabulary"] = f"{len(vocabulary):,} words, {len(characters):,} characters"
    if source.path:
        vectors = everything or read_vectors(source.path, only=wanted_words(vocabulary))
        width = settings.embedding.word_dim
        if vectors.dim != width:
            raise DataError(
                f"the vectors have {vectors.dim} numbers a word, but embedding.word_dim is "
                f"{width}: --set embedding.word_dim={vectors.dim}",
                source.path,
            )
        filled, coverage = vector_table(vocabulary, vectors, counts, seed, source.std)
        with torch.no_grad():
            encoder.embedding.words.copy_(torch.from_numpy(filled))
        notes["coverage"] = str(coverage)
    return encoder
