"""The parts of the paper's encoder by their types, for code that reads their weights."""

from __future__ import annotations

from typing import cast

from genpool import SentenceEncoder
from genpool.embedding.characters import CharacterCNN
from genpool.encoder.lstm import BiLSTMLayer, BiLSTMStack
from genpool.pooling import GeneralizedPooling


def bilstm_layers(encoder: SentenceEncoder) -> list[BiLSTMLayer]:
    """Returns the layers of the stacked BiLSTM, from the lowest up."""
    stack = cast(BiLSTMStack, encoder.encoder)
    return [cast(BiLSTMLayer, layer) for layer in stack.layers]


def generalized_pooling(encoder: SentenceEncoder) -> GeneralizedPooling:
    """Returns the generalized pooling of the encoder."""
    return cast(GeneralizedPooling, encoder.pooling)


def character_cnn(encoder: SentenceEncoder) -> CharacterCNN:
    """Returns the character CNN of the encoder's embedding."""
    return cast(CharacterCNN, encoder.embedding.spelling)
