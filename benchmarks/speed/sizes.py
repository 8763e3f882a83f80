"""The paper's models at their sizes, and batches of sentences as long as theirs.

Speed depends on lengths and on how often words repeat, not on meaning: the sentences are drawn from
a Zipf distribution over made-up words, with the lengths of the real data sets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from genpool.config import ClassifierSettings, EmbeddingSettings, ModelSettings, Part
from genpool.model import Classifier, PairClassifier, TextClassifier
from genpool.text import Batch, Characters, TextPipeline, Vocabulary, WordTokenizer

WORDS = 20_000


@dataclass(frozen=True)
class Size:
    """A configuration of the paper: encoder, pooling, and the sentences of one batch.

    lengths: (mean, deviation) of the tokens of each side; within: the shortest and longest
    """

    name: str
    hidden: int
    layers: int
    attention: int
    examples: int
    sides: int
    classes: int
    lengths: tuple[tuple[float, float], ...]
    within: tuple[int, int]
    frozen: bool


SNLI = Size("snli", 600, 3, 600, 128, 2, 3, ((14.1, 6.1), (8.3, 3.2)), (1, 80), True)
MULTINLI = Size("multinli", 300, 3, 300, 32, 2, 3, ((22.0, 14.0), (11.5, 4.5)), (1, 100), True)
REVIEWS = Size("reviews", 300, 1, 300, 32, 1, 5, ((105.0, 26.0),), (60, 150), False)
#: lengths of half the deviation: batches cut from buffers sorted by length, with little padding
SNLI_SORTED = replace(SNLI, name="snli-sorted", lengths=((14.1, 3.0), (8.3, 1.6)))


def make_text() -> TextPipeline:
    """Returns the text pipeline of all models: 20,000 words drawn at random."""
    random = np.random.default_rng(0)
    letters = "abcdefghijklmnopqrstuvwxyz"
    spelled = {
        "".join(random.choice(list(letters), int(length)))
        for length in random.integers(2, 11, size=3 * WORDS)
    }
    words = sorted(spelled)[:WORDS]
    vocabulary = Vocabulary.build(dict.fromkeys(words, 1))
    return TextPipeline(WordTokenizer("whitespace"), vocabulary, Characters(letters))


def make_model(size: Size, dropout: float = 0.5) -> Classifier:
    """Returns the released program's form of the model, which the textbook can compute too."""
    text = make_text()
    settings = ModelSettings(
        embedding=EmbeddingSettings(frozen=size.frozen, dropout=dropout),
        encoder=Part(
            "stacked-bilstm",
            {"hidden_dim": size.hidden, "layers": size.layers, "shortcut": "both"},
        ),
        pooling=Part("generalized", {"heads": 5, "hidden_dim": size.attention}),
        classifier=ClassifierSettings(hidden_dim=size.hidden, dropout=dropout),
    )
    torch.manual_seed(0)
    cls = PairClassifier if size.sides == 2 else TextClassifier
    return cls.from_settings(text, settings, [str(number) for number in range(size.classes)])


def make_sentences(
    model: Classifier, size: Size, seed: int = 0, examples: int | None = None
) -> list[list[str]]:
    """Returns all first sentences, then all second ones: drawn at random, as by a loader.

    Lengths follow a gamma distribution, which like those of the data sets has a long tail.
    """
    random = np.random.default_rng(seed)
    names = model.text.vocabulary.words[4:]
    sentences = []
    for mean, deviation in size.lengths:
        shape, scale = (mean / deviation) ** 2, deviation**2 / mean
        for _ in range(examples or size.examples):
            length = int(np.clip(round(random.gamma(shape, scale)), *size.within))
            ranks = np.minimum(random.zipf(1.3, length) - 1, len(names) - 1)
            sentences.append([names[rank] for rank in ranks])
    return sentences


def make_batch(model: Classifier, size: Size, seed: int = 0) -> Batch:
    return model.text.batch(make_sentences(model, size, seed))
