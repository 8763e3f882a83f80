"""Models with the switches of the released program, and their equals without them.

Scaling by 1 - p = 1/2 at inference is exact, and it can be moved into the weights: a model whose
word vectors and character filters are halved reads the same token vectors without it.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import torch

from genpool import PairClassifier, SentenceEncoder
from genpool.config import EmbeddingSettings, TextSettings
from tests.helpers.small_models import MakeEncoder

SENTENCES = ["the man sleeps.", "", "A dog, not two, Runs!", "Zzyzx unheard", "dog", "the DOG " * 9]
RELEASED = EmbeddingSettings(
    word_dim=4,
    character_dim=3,
    character_widths=(1, 3),
    character_maps=2,
    dropout=0.5,
    dropout_scaling="test",
    character_initialization="gaussian",
    character_padding="right",
)


def released_encoder(make_encoder: MakeEncoder, pooling: str = "generalized") -> SentenceEncoder:
    """All switches of the embedding, a vocabulary that is read exactly, and sentence ends."""
    encoder = make_encoder(pooling, embedding=RELEASED, text=TextSettings(sentence_ends=True))
    encoder.text = copy.copy(encoder.text)
    encoder.text.vocabulary = copy.copy(encoder.text.vocabulary)
    encoder.text.vocabulary.lower_case_fallback = False
    # A new model, so that its settings say what its text does.
    model = SentenceEncoder.from_settings(encoder.text, encoder.settings)
    model.load_state_dict(encoder.state_dict())
    return model.eval()


def with_halved_embedding(model: SentenceEncoder) -> SentenceEncoder:
    """The same function of a sentence, without scaling at inference."""
    embedding = replace(model.settings.embedding, dropout_scaling="inverted")
    equal = SentenceEncoder.from_settings(model.text, replace(model.settings, embedding=embedding))
    equal.load_state_dict(model.state_dict())
    assert equal.embedding.spelling is not None
    with torch.no_grad():
        for weights in (equal.embedding.words, *equal.embedding.spelling.filters):
            weights.mul_(0.5)
    return equal.eval()


def with_halved_hidden_layers(model: PairClassifier) -> PairClassifier:
    """The same function of a pair, with a classifier that does not scale at inference."""
    equal = copy.deepcopy(model)
    equal.mlp.dropout.scaling = "inverted"
    inputs = equal.mlp.first.in_features
    with torch.no_grad():
        equal.mlp.second.weight[:, inputs:] *= 0.5  # the columns of the first hidden layer
        equal.mlp.output.weight *= 0.5
    return equal
