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
    """One label a row: vectors (rows, dim), labels (rows)."""

    vectors: FloatArray
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        # Frozen for those who use it; here both are brought to one type.
        object.__setattr__(self, "vectors", as_vectors(self.vectors, "vectors"))
        object.__setattr__(self, "labels", tuple(self.labels))
        if len(self.vectors) != len(self.labels):
            raise InputError(f"{len(self.vectors)} vectors and {len(self.labels)} labels")


@dataclass(frozen=True)
class ScoredPairs:
    """One gold score a pair: scores (pairs,), a and b (pairs, dim)."""

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
    """Encode labelled sentences or, with `others`, labelled pairs (as `pair_features`)."""
    for name, given in (("sentences", sentences), ("second sentences", others)):
        if given is not None and len(given) != len(labels):
            raise InputError(f"{len(labels)} labels and {len(given)} {name}: one each a row")
    if others is None:
        return LabelledVectors(encode_sentences(encode, sentences), tuple(labels))
    first, second = _both_sides(encode, sentences, others)
    return LabelledVectors(pair_features(first, second), tuple(labels))


def scored_pairs(
    encode: Encode, scores: Sequence[float], a: Sequence[str], b: Sequence[str]
) -> ScoredPairs:
    """Encode both sides of pairs with a gold score."""
    if not len(scores) == len(a) == len(b):
        raise InputError(f"{len(scores)} scores, {len(a)} and {len(b)} sentences: one each a pair")
    first, second = _both_sides(encode, a, b)
    return ScoredPairs(np.asarray(scores), first, second)


def _both_sides(
    encode: Encode, a: Sequence[str], b: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    # In one call, so that a sentence that stands on both sides is encoded once.
    vectors = encode_sentences(encode, [*a, *b])  # (2 × pairs, dim)
    return vectors[: len(a)], vectors[len(a) :]
