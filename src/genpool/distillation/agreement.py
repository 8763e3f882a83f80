"""How far a student ranks pairs of unseen sentences as its teachers do, source by source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from genpool.disk.row_cache import HalfRows

Encode = Callable[[list[str]], Any]


def agreement_by_source(
    encode: Encode, sentences: Mapping[str, Sequence[str]], targets: HalfRows
) -> dict[str, float]:
    """Returns Spearman's correlation of the student's cosines with the targets', by source.

    Args:
        encode: returns the student's vectors of sentences.
        sentences: of every source; all pairs of one source are compared.
        targets: (all sentences, dim), in the same order.
    """
    scores, start = {}, 0
    for source, texts in sentences.items():
        target = np.asarray(targets[start : start + len(texts)], dtype=np.float32)
        start += len(texts)
        if len(texts) > 2:
            student, teacher = pair_cosines(encode(list(texts))), pair_cosines(target)
            scores[source] = float(spearmanr(student, teacher).statistic)
    return scores


def pair_cosines(vectors: NDArray[Any]) -> NDArray[np.floating[Any]]:
    """Returns the cosines of all pairs of vectors (n, dim): (n (n - 1) / 2,)."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.maximum(lengths, 1e-12)
    cosines: NDArray[np.floating[Any]] = (unit @ unit.T)[np.triu_indices(len(unit), 1)]
    return cosines
