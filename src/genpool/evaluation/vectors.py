"""Sentence vectors as the evaluations take them: encoded once, finite, two-dimensional.

An encoder is any callable from a list of sentences to an array with one row per sentence, such as
`SentenceEncoder.encode`; no model is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genpool.errors import InputError

FloatArray = NDArray[np.float64]
Encode = Callable[[list[str]], NDArray[Any]]


def encode_sentences(encode: Encode, sentences: Sequence[str]) -> FloatArray:
    """Encodes sentences, each distinct one once: SICK and STS repeat many of theirs.

    Args:
        encode: a function from a list of sentences to their vectors, as `SentenceEncoder.encode`.
        sentences: the sentences.

    Returns:
        The vectors, shape (sentences, dim).

    Raises:
        InputError: a single string was passed, there are no sentences, or a vector is not finite.

    Example:
        >>> encode_sentences(model.encode, ["A dog runs.", "A dog runs."]).shape
        (2, 384)
    """
    if isinstance(sentences, str):
        raise InputError(f"got one string ({sentences[:40]!r}); expected a list of sentences")
    distinct = list(dict.fromkeys(sentences))
    if not distinct:
        raise InputError("no sentences to encode")
    vectors = as_vectors(encode(distinct), "the encoder's result")
    if len(vectors) != len(distinct):
        counts = f"{len(vectors)} vectors for {len(distinct)} sentences"
        raise InputError(f"the encoder returned {counts}")
    index = {sentence: at for at, sentence in enumerate(distinct)}
    return vectors[[index[sentence] for sentence in sentences]]  # (sentences, dim)


def as_vectors(values: ArrayLike, name: str) -> FloatArray:
    """Returns a (rows, dim) array of finite 64-bit floats; `name` is what it is in messages."""
    try:
        vectors = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: not an array of numbers: {error}") from error
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise InputError(f"{name}: the shape is {vectors.shape}; expected (rows, dim)")
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        bad = np.flatnonzero(~finite)
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


def as_scores(values: ArrayLike, rows: int) -> FloatArray:
    """Returns gold scores as an array of finite 64-bit floats, one for each of `rows` pairs."""
    try:
        scores = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"gold scores: not numbers: {error}") from error
    if scores.shape != (rows,):
        raise InputError(
            f"gold scores of the shape {scores.shape}; expected ({rows},), one per pair"
        )
    if not np.isfinite(scores).all():
        bad = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise InputError(f"gold score of row {bad + 1} is {scores[bad]}: expected a finite number")
    return scores


def pair_features(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """Returns the features of the paper's pair classifier, [a; b; |a−b|; a∗b] (section 3.3).

    Args:
        a: vectors, shape (pairs, dim).
        b: vectors, shape (pairs, dim).

    Returns:
        The features, shape (pairs, 4 × dim).

    Raises:
        InputError: the shapes differ, or a value is not finite.

    Example:
        >>> pair_features([[1.0]], [[3.0]])
        array([[1., 3., 2., 3.]])
    """
    first, second = as_pairs(a, b)
    parts = [first, second, np.abs(first - second), first * second]
    return np.concatenate(parts, axis=1)  # (pairs, 4 × dim)


def relatedness_features(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """Returns [|a−b|; a∗b], which is symmetric in a and b, as relatedness is."""
    first, second = as_pairs(a, b)
    return np.concatenate([np.abs(first - second), first * second], axis=1)  # (pairs, 2 × dim)
