"""Small indexes, and a search of them that is written as loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from genpool.search import ModelReference, index_writer

NO_MODEL = ModelReference("sha256:of-no-model")


def write_index(
    folder: Path,
    vectors: np.ndarray,
    sentences: Sequence[str] | None = None,
    chunk: int = 7,
    model: ModelReference = NO_MODEL,
    columns: Sequence[str] = (),
    values: Sequence[Sequence[object]] = (),
    append: bool = False,
) -> Path:
    """Writes an index of these vectors, a few rows at a time; the first column is that of ids."""
    texts = list(sentences or [f"row {row}" for row in range(len(vectors))])
    ids = columns[0] if columns else None
    with index_writer(folder, vectors.shape[1], model, columns, ids, append) as write:
        for first in range(0, len(vectors), chunk):
            part = slice(first, first + chunk)
            write(texts[part], vectors[part], values[part])
    return folder


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    product = math.fsum(a * b for a, b in zip(one, other, strict=True))
    length = math.sqrt(math.fsum(a * a for a in one)) * math.sqrt(math.fsum(b * b for b in other))
    return product / length if length else 0.0


def by_loops(vectors: np.ndarray, query: np.ndarray, top: int) -> list[tuple[int, float]]:
    """Returns rows and cosines, best first; where cosines tie, in the order of the rows."""
    scored = [(row, cosine(vector, query.tolist())) for row, vector in enumerate(vectors.tolist())]
    return sorted(scored, key=lambda pair: -pair[1])[:top]


def unit(vectors: np.ndarray) -> np.ndarray:
    """Returns vectors (..., dim) of length 1; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1))


def random_vectors(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
