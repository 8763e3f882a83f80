"""The parameters of the paper's four models, counted by hand.

The word table is counted separately: 300 values per word, frozen for SNLI and MultiNLI, trained for
Age and Yelp.
"""

from __future__ import annotations

import string
from collections.abc import Iterable

import pytest
import torch
from torch import nn

from genpool.config import ClassifierSettings, EmbeddingSettings, ModelSettings, Part
from genpool.model import PairClassifier, SentenceEncoder, TextClassifier
from genpool.text import Characters, TextPipeline, Vocabulary, WordTokenizer
from genpool.text.vocabulary import SPECIAL_WORDS

#: the word types of SNLI's training set, with the four special entries
WORDS = 42_394
#: 62 letters and digits, and the four special entries
CHARACTERS = 66
PAIR_LABELS = ("entailment", "neutral", "contradiction")
STARS = ("1", "2", "3", "4", "5")

# 15 values per character; 100 maps of width 1, 3 and 5 over 15 dimensions, without bias.
CHARACTER_CNN = 66 * 15 + 100 * 15 * 1 + 100 * 15 * 3 + 100 * 15 * 5


@pytest.fixture(scope="module")
def text() -> TextPipeline:
    words = [*SPECIAL_WORDS, *(f"word{number}" for number in range(WORDS - 4))]
    characters = Characters(string.ascii_letters + string.digits)
    return TextPipeline(WordTokenizer(), Vocabulary(words), characters)


def model_settings(layers: int, width: int, shortcut: str, frozen: bool) -> ModelSettings:
    """layers x width, 5 heads, attention network and MLP of that width, [300 word ; 300 char]."""
    return ModelSettings(
        embedding=EmbeddingSettings(word_dim=300, frozen=frozen),
        encoder=Part(
            "stacked-bilstm", {"hidden_dim": width, "layers": layers, "shortcut": shortcut}
        ),
        pooling=Part("generalized", {"heads": 5, "hidden_dim": width}),
        classifier=ClassifierSettings(hidden_dim=width),
    )


def pair_model(text: TextPipeline, width: int, shortcut: str) -> PairClassifier:
    with torch.device("meta"):
        settings = model_settings(3, width, shortcut, frozen=True)
        return PairClassifier.from_settings(text, settings, PAIR_LABELS)


def count(parameters: Iterable[nn.Parameter]) -> int:
    return sum(parameter.numel() for parameter in parameters)


def trained_without_table(model: nn.Module) -> int:
    return sum(
        parameter.numel()
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and name != "encoder.embedding.words"
    )


@pytest.mark.parametrize(
    ("width", "shortcut", "above", "total"),
    [  # `above` is the input of the layers above the first: 600 and one or both directions below
        (600, "both", 600 + 1200, 65_200_893),
        (600, "direction", 600 + 600, 59_440_893),
        (300, "both", 600 + 600, 18_477_693),
        (300, "direction", 600 + 300, 17_037_693),
    ],
    ids=["SNLI, released", "SNLI, paper", "MultiNLI, released", "MultiNLI, paper"],
)
def test_models_of_pairs(
    text: TextPipeline, width: int, shortcut: str, above: int, total: int
) -> None:
    model = pair_model(text, width, shortcut)
    # An LSTM direction: four parts, each width x input, width x width and width.
    layer_1 = 2 * 4 * (width * 600 + width * width + width)
    layer_2 = 2 * 4 * (width * above + width * width + width)
    pooling = 5 * (width * 2 * width + width + 2 * width * width + 2 * width)
    # 5 heads of 2 * width are 10 * width a sentence, 40 * width a pair.
    mlp = (40 * width * width + width) + (41 * width * width + width) + (width * 3 + 3)
    assert count(model.encoder.encoder.parameters()) == layer_1 + 2 * layer_2
    assert count(model.encoder.pooling.parameters()) == pooling
    assert count(model.mlp.parameters()) == mlp
    cnn = model.encoder.embedding.spelling
    assert cnn is not None and count(cnn.parameters()) == CHARACTER_CNN
    trained = CHARACTER_CNN + layer_1 + 2 * layer_2 + pooling + mlp
    assert trained_without_table(model) == trained == total
    assert count(p for p in model.parameters() if not p.requires_grad) == WORDS * 300


@pytest.mark.parametrize("shortcut", ["direction", "both"])
def test_age_and_yelp_in_either_form(text: TextPipeline, shortcut: str) -> None:
    # One layer has nothing below it, so that the two forms of the shortcut are one.
    # Age and Yelp have the same sizes, five classes each.
    with torch.device("meta"):
        settings = model_settings(1, 300, shortcut, frozen=False)
        model = TextClassifier.from_settings(text, settings, STARS)
    layer_1 = 2 * 4 * (300 * 600 + 300 * 300 + 300)
    pooling = 5 * (300 * 600 + 300 + 600 * 300 + 600)
    # A single sentence: its 3000 dimensions are the input of the MLP.
    mlp = (3000 * 300 + 300) + (3300 * 300 + 300) + (300 * 5 + 5)
    trained = CHARACTER_CNN + layer_1 + pooling + mlp
    assert trained_without_table(model) == trained == 5_873_495
    assert count(p for p in model.parameters() if p.requires_grad) == (trained + WORDS * 300)


def test_defaults_are_the_papers_multinli_model(text: TextPipeline) -> None:
    with torch.device("meta"):
        model = PairClassifier(SentenceEncoder.from_settings(text), PAIR_LABELS)
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    paper = pair_model(text, 300, "direction")
    assert shapes == {name: parameter.shape for name, parameter in paper.named_parameters()}
    assert not model.encoder.embedding.words.requires_grad
