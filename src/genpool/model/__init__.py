"""The three models: the sentence encoder, and two classifiers that put an MLP on top of it."""

from genpool.model.classifier import Classified, Classifier
from genpool.model.classifiers import PairClassifier, TextClassifier, load_model
from genpool.model.sentence_encoder import SentenceEncoder

__all__ = [
    "Classified",
    "Classifier",
    "PairClassifier",
    "SentenceEncoder",
    "TextClassifier",
    "load_model",
]
