"""Encoders of every kind with random weights, and sentences to compare their vectors on."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from genpool import SentenceEncoder
from genpool.config import EmbeddingSettings, ModelSettings, Part, TextSettings
from genpool.text import Characters, TextPipeline, Vocabulary, WordTokenizer

SENTENCES = ["A man sleeps.", "", "a dog runs in the park", "Unheard zzyzx words", "dog", "dog dog"]
OPTIONS: dict[str, dict[str, Any]] = {
    "bag-of-words": {},
    "cnn": {"maps": 4},
    "shortcut-stacked": {"hidden_dims": (3, 4, 5)},
    "disan": {"hidden_dim": 5},
    "nse": {"hidden_dim": 5},
    "cafe": {"hidden_dim": 5},
    "resan": {"hidden_dim": 5},
    "spinn": {"hidden_dim": 5, "tracking_dim": 3},
    "tree-cnn": {"maps": 5},
    "nti": {"hidden_dim": 5},
    "gumbel-tree": {"hidden_dim": 6},
}


def model(encoder: str, pooling: str = "generalized", ends: bool = False, layers: int = 2):
    vocabulary = Vocabulary.build({"a": 3, "man": 2, "dog": 2, "the": 1, "park": 1})
    letters = Characters("abcdefghijklmnopqrstuvwxyz")
    text = TextPipeline(WordTokenizer(), vocabulary, letters, sentence_ends=ends)
    settings = ModelSettings(
        text=TextSettings(sentence_ends=ends),
        embedding=EmbeddingSettings(word_dim=7, character_maps=3),
        encoder=Part(encoder, OPTIONS.get(encoder, {"hidden_dim": 5, "layers": layers})),
        pooling=Part(pooling),
    )
    torch.manual_seed(1)
    made = SentenceEncoder.from_settings(text, settings)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return made


def largest_difference(one, other) -> float:
    return float(np.abs(np.asarray(one) - np.asarray(other)).max())
