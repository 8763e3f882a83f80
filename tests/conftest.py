"""Tiny models for every test: a vocabulary of a dozen words, layers of a few numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

import pytest
import torch
from torch import nn

from genpool import PairClassifier, SentenceEncoder, TextClassifier
from genpool.config import (
    ClassifierSettings,
    EmbeddingSettings,
    ModelSettings,
    Part,
    TextSettings,
)
from genpool.text import Characters, TextPipeline, Vocabulary, WordTokenizer

# Tensors of a few numbers: sharing them out between threads costs more than the work.
torch.set_num_threads(1)

WORDS = ("the", "a", "man", "dog", "sleeps", "rests", "runs", "red", "not", "two", ".", ",")
LABELS = ("entailment", "neutral", "contradiction")
#: options that make each encoder and each pooling small, yet use what it can do
SMALL_ENCODERS: dict[str, dict[str, Any]] = {
    "stacked-bilstm": {"hidden_dim": 3, "layers": 2},
    "bilstm": {"hidden_dim": 3},
    "shortcut-stacked": {"hidden_dims": (2, 3)},
    "residual-stacked": {"hidden_dim": 3, "layers": 2},
    "lstm": {"hidden_dim": 5},
    "gru": {"hidden_dim": 5},
    "cnn": {"maps": 3, "widths": (2, 3)},
    "disan": {"hidden_dim": 3},
    "bag-of-words": {},
}
SMALL_POOLINGS: dict[str, dict[str, Any]] = {
    "generalized": {"heads": 2, "hidden_dim": 4},
    "scalar": {"heads": 2, "hidden_dim": 4},
}

Module = TypeVar("Module", bound=nn.Module)
MakeText = Callable[..., TextPipeline]
MakeSettings = Callable[..., ModelSettings]
MakeEncoder = Callable[..., SentenceEncoder]


def lively(model: Module, seed: int = 0) -> Module:
    """The same model with numbers large enough to tell right from wrong.

    The usual start is so near zero that vectors of any two sentences agree to five digits.
    """
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.rand(parameter.shape, generator=random).mul(1.6).sub(0.8))
    return model


@pytest.fixture(scope="session")
def make_text() -> MakeText:
    """make_text(rules="penn", sentence_ends=False, max_length=None) -> a small TextPipeline."""

    tokenizer = cache(WordTokenizer)  # the rules take longer to compile than most tests to run

    def make(rules: str = "penn", **options: Any) -> TextPipeline:
        vocabulary = Vocabulary.build(dict.fromkeys(WORDS, 1))
        return TextPipeline(tokenizer(rules), vocabulary, Characters.build(WORDS), **options)

    return make


@pytest.fixture(scope="session")
def make_settings() -> MakeSettings:
    """make_settings(pooling="generalized", encoder="stacked-bilstm") -> small settings.

    Both may also be a Part with options of its own. More arguments replace sections:
    make_settings(text=TextSettings(sentence_ends=True)).
    """

    def part(given: str | Part, small: dict[str, dict[str, Any]]) -> Part:
        return given if isinstance(given, Part) else Part(given, small.get(given, {}))

    def make(
        pooling: str | Part = "generalized",
        encoder: str | Part = "stacked-bilstm",
        **sections: Any,
    ) -> ModelSettings:
        settings = ModelSettings(
            text=TextSettings(),
            embedding=EmbeddingSettings(
                word_dim=4, character_dim=3, character_widths=(1, 2), character_maps=2
            ),
            encoder=part(encoder, SMALL_ENCODERS),
            pooling=part(pooling, SMALL_POOLINGS),
            classifier=ClassifierSettings(hidden_dim=5),
        )
        return replace(settings, **sections)

    return make


@pytest.fixture(scope="session")
def make_encoder(make_text: MakeText, make_settings: MakeSettings) -> MakeEncoder:
    """make_encoder(pooling, encoder, seed=0, **sections) -> a SentenceEncoder in eval mode."""

    def make(
        pooling: str | Part = "generalized",
        encoder: str | Part = "stacked-bilstm",
        seed: int = 0,
        **sections: Any,
    ) -> SentenceEncoder:
        settings = make_settings(pooling, encoder, **sections)
        text = make_text(
            settings.text.rules,
            sentence_ends=settings.text.sentence_ends,
            max_length=settings.text.max_length,
        )
        return lively(SentenceEncoder(text, settings), seed).eval()

    return make


@pytest.fixture
def text(make_text: MakeText) -> TextPipeline:
    return make_text()


@pytest.fixture
def sentence_encoder(make_encoder: MakeEncoder) -> SentenceEncoder:
    """Generalized pooling with two heads on a stacked BiLSTM of two layers."""
    return make_encoder()


@pytest.fixture
def text_classifier(make_encoder: MakeEncoder) -> TextClassifier:
    """Labels: entailment, neutral, contradiction."""
    return lively(TextClassifier(make_encoder(), LABELS), seed=1).eval()


@pytest.fixture
def pair_classifier(make_encoder: MakeEncoder) -> PairClassifier:
    """Labels: entailment, neutral, contradiction."""
    return lively(PairClassifier(make_encoder(), LABELS), seed=1).eval()
