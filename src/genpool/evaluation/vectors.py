"""Sentence vectors as the evaluations take them: encoded once, finite, with labels or scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genpool.errors import InputError

FloatArray = NDArray[np.float64]
#: such as `SentenceEncoder.encode`: sentences in, an array with one row per sentence out
Encode = Callable[[list[str]], NDArray[Any]]


def encode_sentences(encode: Encode, sentences: Sequence[str]) -> FloatArray:
    """Returns the vectors of sentences (sentences, dim), each distinct one encoded once."""
    distinct = list(dict.fromkeys(sentences))
    if not distinct:
        raise InputError("no sentences to encode")
    vectors = as_vectors(encode(distinct), "the encoder's result")
    if len(vectors) != len(distinct):
        raise InputError(
            f"the encoder returned {len(vectors)} vectors for {len(distinct)} sentences"
        )
    index = {sentence: at for at, sentence in enumerate(distinct)}
    return vectors[[index[sentence] for sentence in sentences]]  # (sentences, dim)


def as_vectors(values: ArrayLike, name: str, axes: str = "(rows, dim)") -> FloatArray:
    """Returns an array of finite 64-bit floats; `name` is what it is in messages."""
    try:
        vectors = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: not an array of numbers: {error}") from error
    if vectors.ndim != len(axes.split()) or 0 in vectors.shape:
        raise InputError(f"{name}: the shape is {vectors.shape}; expected {axes}")
    bad = np.flatnonzero(~np.isfinite(vectors).reshape(len(vectors), -1).all(axis=1))
    if len(bad):
        raise InputError(
            f"{name}: {len(bad)} of {len(vectors)} rows hold NaN or infinity: row {bad[0] + 1}"
        )
    return vectors


def as_pairs(a: ArrayLike, b: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Returns both sides of a list of pairs: two arrays of vectors of the same shape."""
    first, second = as_vectors(a, "a"), as_vectors(b, "b")
    if first.shape != second.shape:
        raise InputError(f"a has the shape {first.shape} and b {second.shape}; expected the same")
    return first, second


@dataclass(frozen=True)
class LabelledVectors:
    """Finite vectors (rows, dim) with a label each; anything else raises an InputError."""

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
    """Gold scores (pairs,) and the vectors (pairs, dim) of the first and of the second sentences.

    Shapes that differ and values that are not finite raise an InputError.
    """

    scores: FloatArray
    a: FloatArray
    b: FloatArray

    def __post_init__(self) -> None:
        a, b = as_pairs(self.a, self.b)
        scores = as_vectors(self.scores, "gold scores", "(rows,)")
        if len(scores) != len(a):
            raise InputError(f"{len(scores)} gold scores; expected {len(a)}, one per pair")
        for name, value in (("a", a), ("b", b), ("scores", scores)):
            object.__setattr__(self, name, value)


def labelled_vectors(
    encode: Encode,
    labels: Sequence[str],
    sentences: Sequence[str],
    others: Sequence[str] | None = None,
) -> LabelledVectors:
    """Encodes labelled sentences, or labelled pairs if `others` are the second sentences.

    A pair becomes the features of the paper's pair classifier, [a; b; |a−b|; a∗b]. Raises
    InputError if the lengths differ or a vector is not finite.

    Example:
        >>> labelled_vectors(model.encode, ["good", "bad"], ["I like it.", "I do not."])
    """
    for name, texts in (("sentences", sentences), ("second sentences", others)):
        if texts is not None and len(texts) != len(labels):
            raise InputError(f"{len(labels)} labels and {len(texts)} {name}; expected one per row")
    # Both sides in one call, so that a sentence that is on both is encoded once.
    vectors = encode_sentences(encode, [*sentences, *(others or ())])
    if others is not None:
        a, b = np.split(vectors, 2)  # (pairs, dim)
        vectors = np.concatenate([a, b, np.abs(a - b), a * b], axis=1)  # (pairs, 4 × dim)
    return LabelledVectors(vectors, tuple(labels))


def scored_pairs(
    encode: Encode, scores: Sequence[float], a: Sequence[str], b: Sequence[str]
) -> ScoredPairs:
    """Encodes pairs of sentences that have a gold score: a are the first ones, b the second.

    Raises InputError if the lengths differ or a vector is not finite.

    Example:
        >>> scored_pairs(model.encode, [4.5], ["A dog runs."], ["A dog is running."])
    """
    if not len(scores) == len(a) == len(b):
        counts = f"{len(scores)} scores, {len(a)} and {len(b)} sentences"
        raise InputError(f"{counts}; expected one of each per pair")
    vectors = encode_sentences(encode, [*a, *b])  # (2 × pairs, dim)
    return ScoredPairs(np.asarray(scores), vectors[: len(a)], vectors[len(a) :])
