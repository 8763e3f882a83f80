"""Tiny models for every test: a vocabulary of a dozen words, layers of a few numbers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

from genpool import PairClassifier, SentenceEncoder, TextClassifier
from genpool.config import (
    EmbeddingSettings,
    ModelSettings,
    Part,
    TextSettings,
)
from genpool.text import Characters, TextPipeline, Vocabulary, WordTokenizer
from tests.helpers.small_models import (
    LABELS,
    SMALL_ENCODERS,
    SMALL_MLP,
    SMALL_POOLINGS,
    WORDS,
    MakeEncoder,
    MakeSettings,
    MakeText,
    lively,
)

# Tensors of a few numbers: sharing them out between threads costs more than the work.
torch.set_num_threads(1)

pytest_plugins = ["tests.helpers.commands"]

#: the files that take longest; begun last, one of them would leave a core without work
SLOW_FILES = (
    "tests/test_docs.py",
    "tests/reproduction/test_reproduce.py",
    "tests/test_readme.py",
    "tests/integrations/test_onnx_export.py",
    "tests/service/browser/test_for_everybody.py",
    "tests/training/test_stop_and_go.py",
)
#: folders whose tests all belong to one tier
FOLDER_MARKERS = {
    "tests/service/browser/": "browser",
    "tests/faults/": "faults",
    "tests/benchmarks/": "slow",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of some folders, and puts the slow files first."""
    for item in items:
        for folder, marker in FOLDER_MARKERS.items():
            if item.location[0].startswith(folder):
                item.add_marker(marker)
    ranks = {name: rank for rank, name in enumerate(SLOW_FILES)}
    items.sort(key=lambda item: ranks.get(item.location[0], len(ranks)))


@pytest.fixture(scope="session")
def make_text() -> MakeText:
    """make_text(rules="penn", folding=False, sentence_ends=False, max_length=None) -> small."""

    tokenizer = cache(WordTokenizer)  # the rules take longer to compile than most tests to run

    def make(rules: str = "penn", folding: bool = False, **options: Any) -> TextPipeline:
        vocabulary = Vocabulary.build(dict.fromkeys(WORDS, 1), folding=folding)
        characters = Characters.build(WORDS)
        return TextPipeline(tokenizer(rules, folding), vocabulary, characters, **options)

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
            classifier=SMALL_MLP,
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
            settings.text.folding,
            sentence_ends=settings.text.sentence_ends,
            max_length=settings.text.max_length,
        )
        return lively(SentenceEncoder.from_settings(text, settings), seed).eval()

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
    return lively(TextClassifier(make_encoder(), LABELS, SMALL_MLP), seed=1).eval()


@pytest.fixture
def pair_classifier(make_encoder: MakeEncoder) -> PairClassifier:
    """Labels: entailment, neutral, contradiction."""
    return lively(PairClassifier(make_encoder(), LABELS, SMALL_MLP), seed=1).eval()
