"""Explaining with any model: one sentence or two, with their label where the model has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from genpool.errors import InputError
from genpool.inference.explanation import Explanation, PairExplanation
from genpool.model import PairClassifier, SentenceEncoder, TextClassifier


class Explains(Protocol):
    """An encoder that is no model of genpool, such as one of sentence-transformers."""

    def explain(self, sentence: str) -> Explanation: ...
    def explain_pair(self, first: str, second: str) -> PairExplanation: ...


def explain_sentences(
    model: SentenceEncoder | TextClassifier | PairClassifier | Explains, sentences: Sequence[str]
) -> Explanation | PairExplanation:
    """Returns what decides the label, if the model predicts one for as many sentences.

    Otherwise what decides the vector of the only sentence, or the similarity of the two.

    Args:
        model: an encoder or a classifier.
        sentences: one or two.

    Raises:
        InputError: there are more, or none.
    """
    if not 1 <= len(sentences) <= 2:
        raise InputError(f"got {len(sentences)} sentences; expected one or two.")
    if isinstance(model, TextClassifier) and len(sentences) == 1:
        return model.explain(*sentences)
    if isinstance(model, PairClassifier) and len(sentences) == 2:
        return model.explain(*sentences)
    encoder = model.encoder if isinstance(model, TextClassifier | PairClassifier) else model
    return encoder.explain(*sentences) if len(sentences) == 1 else encoder.explain_pair(*sentences)
