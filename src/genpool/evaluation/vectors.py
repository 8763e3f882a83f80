"""Sentence vectors as the evaluations take them: encoded once, finite, two-dimensional.

An encoder is any callable from a list of sentences to an array with one row a sentence, such as
`SentenceEncoder.encode`; nothing here knows a model.
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
    """The vectors of `sentences`, row by row.

    Each different sentence is encoded once: SICK and STS repeat many of theirs.
    """
    if isinstance(sentences, str):
        raise InputError(f"one string was given ({sentences[:40]!r}); expected a list of sentences")
    different = list(dict.fromkeys(sentences))
    if not different:
        raise InputError("no sentences to encode")
    vectors = as_vectors(encode(different), "the encoder's result")
    if len(vectors) != len(different):
        raise InputError(f"the encoder gave {len(vectors)} vectors for {len(different)} sentences")
    place = {sentence: index for index, sentence in enumerate(different)}
    return vectors[[place[sentence] for sentence in sentences]]  # (sentences, dim)


def as_vectors(given: ArrayLike, name: str) -> FloatArray:
    """`given` as a (rows, dim) array of finite 64-bit numbers, or an error that calls it `name`."""
    try:
        vectors = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: not an array of numbers: {error}") from error
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise InputError(f"{name}: expected the shape (rows, dim), given {vectors.shape}")
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        bad = np.flatnonzero(~finite)
        raise InputError(
            f"{name}: {len(bad)} of {len(vectors)} rows hold NaN or infinity: row {bad[0] + 1}"
        )
    return vectors


def as_pairs(a: ArrayLike, b: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both sides of a list of pairs: two arrays of vectors of the same shape."""
    first, second = as_vectors(a, "a"), as_vectors(b, "b")
    if first.shape != second.shape:
        raise InputError(f"a has the shape {first.shape} and b {second.shape}: one row each a pair")
    return first, second


def as_scores(given: ArrayLike, rows: int) -> FloatArray:
    """Gold scores, one finite number for each of `rows` pairs."""
    try:
        scores = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"gold scores: not numbers: {error}") from error
    if scores.shape != (rows,):
        raise InputError(f"gold scores of the shape {scores.shape} for {rows} pairs: one each")
    if not np.isfinite(scores).all():
        bad = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise InputError(f"gold score of row {bad + 1} is {scores[bad]}: expected a finite number")
    return scores


def pair_features(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """[a; b; |a−b|; a∗b], what the paper's pair classifier sees (section 3.3)."""
    first, second = as_pairs(a, b)
    parts = [first, second, np.abs(first - second), first * second]
    return np.concatenate(parts, axis=1)  # (pairs, 4 × dim)


def relatedness_features(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """[|a−b|; a∗b], the same for a pair and its reverse, as relatedness is."""
    first, second = as_pairs(a, b)
    return np.concatenate([np.abs(first - second), first * second], axis=1)  # (pairs, 2 × dim)
