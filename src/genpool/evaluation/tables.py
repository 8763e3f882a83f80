"""Tables after encoding: labelled sentences or pairs, and pairs with a score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from genpool.errors import InputError
from genpool.evaluation.vectors import (
    Encode,
    FloatArray,
    as_pairs,
    as_scores,
    as_vectors,
    encode_sentences,
    pair_features,
)


@dataclass(frozen=True)
class LabelledVectors:
    """Vectors with a label each.

    Args:
        vectors: an array of shape (rows, dim).
        labels: the label of every row.

    Raises:
        InputError: the lengths differ, or a value is not finite.
    """

    vectors: FloatArray
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        # Frozen for its users; here both are converted to one type.
        object.__setattr__(self, "vectors", as_vectors(self.vectors, "vectors"))
        object.__setattr__(self, "labels", tuple(self.labels))
        if len(self.vectors) != len(self.labels):
            raise InputError(f"{len(self.vectors)} vectors and {len(self.labels)} labels")


@dataclass(frozen=True)
class ScoredPairs:
    """Pairs of vectors with a gold score each.

    Args:
        scores: an array of shape (pairs,).
        a: the vectors of the first sentences, shape (pairs, dim).
        b: the vectors of the second sentences, shape (pairs, dim).

    Raises:
        InputError: the shapes differ, or a value is not finite.
    """

    scores: FloatArray
    a: FloatArray
    b: FloatArray

    def __post_init__(self) -> None:
        a, b = as_pairs(self.a, self.b)
        object.__setattr__(self, "a", a)
        object.__setattr__(self, "b", b)
        object.__setattr__(self, "scores", as_scores(self.scores, len(a)))


def labelled_vectors(
    encode: Encode,
    labels: Sequence[str],
    sentences: Sequence[str],
    others: Sequence[str] | None = None,
) -> LabelledVectors:
    """Encodes labelled sentences or labelled pairs of sentences.

    Args:
        encode: a function from a list of sentences to their vectors, as `SentenceEncoder.encode`.
        labels: the label of every row.
        sentences: the sentence, or first sentence, of every row.
        others: the second sentence of every row; a pair becomes its `pair_features`. None
            (default): single sentences.

    Raises:
        InputError: the lengths differ, or a vector is not finite.

    Example:
        >>> labelled_vectors(model.encode, ["good", "bad"], ["I like it.", "I do not."])
    """
    for name, texts in (("sentences", sentences), ("second sentences", others)):
        if texts is not None and len(texts) != len(labels):
            raise InputError(f"{len(labels)} labels and {len(texts)} {name}; expected one per row")
    if others is None:
        return LabelledVectors(encode_sentences(encode, sentences), tuple(labels))
    first, second = _both_sides(encode, sentences, others)
    return LabelledVectors(pair_features(first, second), tuple(labels))


def scored_pairs(
    encode: Encode, scores: Sequence[float], a: Sequence[str], b: Sequence[str]
) -> ScoredPairs:
    """Encodes pairs of sentences that have a gold score.

    Args:
        encode: a function from a list of sentences to their vectors, as `SentenceEncoder.encode`.
        scores: the score of every pair.
        a: the first sentences.
        b: the second sentences.

    Raises:
        InputError: the lengths differ, or a vector is not finite.

    Example:
        >>> scored_pairs(model.encode, [4.5], ["A dog runs."], ["A dog is running."])
    """
    if not len(scores) == len(a) == len(b):
        counts = f"{len(scores)} scores, {len(a)} and {len(b)} sentences"
        raise InputError(f"{counts}; expected one of each per pair")
    first, second = _both_sides(encode, a, b)
    return ScoredPairs(np.asarray(scores), first, second)


def _both_sides(
    encode: Encode, a: Sequence[str], b: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    # In one call, so that a sentence that is on both sides is encoded once.
    vectors = encode_sentences(encode, [*a, *b])  # (2 × pairs, dim)
    return vectors[: len(a)], vectors[len(a) :]
