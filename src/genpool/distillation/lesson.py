"""What a student learns: the vectors of teachers made comparable, the loss, and its batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr
from torch import Tensor
from torch.nn import functional

from genpool.disk.row_cache import HalfRows
from genpool.distillation.corpus import Group
from genpool.distillation.settings import TeacherSettings

#: random pairs of sentences from which the spread of a teacher's cosines is computed
SPREAD_PAIRS = 20_000
#: rows that are converted, or whose moments are summed, together
CHUNK_ROWS = 65536
#: dimensions that decide which sentences are close: the first ones say most
COMPARED_DIMENSIONS = 64
#: sentences that are compared with all centres together
COMPARED_ROWS = 8192

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Targets:
    """How the vectors of the teachers become one target vector.

    The cosine of two targets is the weighted mean of the teachers' cosines, each centred.

    Attributes:
        means: (dim,) of every teacher, what is subtracted; zeros without centring.
        shares: how much of the cosine each teacher decides; their sum is 1.
    """

    means: tuple[NDArray[np.float32], ...]
    shares: tuple[float, ...]

    @classmethod
    def fit(cls, vectors: Sequence[HalfRows], settings: TeacherSettings) -> Targets:
        """Returns the means and shares for the vectors (sentences, dim) of every teacher."""
        if len(vectors) == 1 and not settings.centre:
            return cls((np.zeros(vectors[0].shape[1], dtype=np.float32),), (1.0,))
        means: tuple[NDArray[np.float32], ...] = tuple(
            np.asarray(settings.centre_share * np.mean(part, axis=0, dtype=np.float64), np.float32)
            for part in vectors
        )
        weights = settings.weights or (1.0,) * len(vectors)
        scaled = [
            weight / spread_of_cosines(part, mean)
            for weight, part, mean in zip(weights, vectors, means, strict=True)
        ]
        return cls(means, tuple(share / sum(scaled) for share in scaled))

    def apply(self, vectors: Sequence[HalfRows]) -> HalfRows:
        """Returns the targets (sentences, sum of dims), of length 1."""
        size, width = len(vectors[0]), sum(part.shape[1] for part in vectors)
        targets = np.empty((size, width), dtype=np.float16)
        for start in range(0, size, CHUNK_ROWS):
            chunk = [
                np.sqrt(share) * _unit(part[start : start + CHUNK_ROWS].astype(np.float32) - mean)
                for part, mean, share in zip(vectors, self.means, self.shares, strict=True)
            ]
            targets[start : start + CHUNK_ROWS] = np.concatenate(chunk, axis=1)
        return targets


def spread_of_cosines(vectors: HalfRows, mean: NDArray[np.float32]) -> float:
    """Returns the standard deviation of the centred cosines of random pairs of sentences."""
    random = np.random.default_rng(0)
    first, second = random.integers(0, len(vectors), (2, SPREAD_PAIRS))
    differ = first != second
    left, right = (
        _unit(vectors[rows[differ]].astype(np.float32) - mean) for rows in (first, second)
    )
    return max(float((left * right).sum(axis=1).std()), 1e-6)


def _unit(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Floats = rows / np.maximum(lengths, 1e-12)
    return unit


def distillation_loss(
    student: Tensor, teacher: Tensor, similarity: float, widths: Sequence[int] = ()
) -> Tensor:
    """Returns the mean of 1 - cosine of vectors (batch, dim), plus `similarity` times the mean
    squared error of the cosines between the sentences of the batch.

    The diagonal of these cosines, which is 1 on both sides, is not counted. Their error is the mean
    over the complete vectors and their first dimensions, of these `widths` (Matryoshka).
    """
    vectors = functional.normalize(student, dim=1)  # (batch, dim)
    targets = functional.normalize(teacher, dim=1)  # (batch, dim)
    loss = 1 - (vectors * targets).sum(dim=1).mean()
    if similarity and len(vectors) > 1:
        cosines = targets @ targets.T  # (batch, batch)
        forms = [vectors, *(functional.normalize(student[:, :width], dim=1) for width in widths)]
        errors = [_cosine_error(form, cosines) for form in forms]
        loss = loss + similarity * torch.stack(errors).mean()
    return loss


def _cosine_error(vectors: Tensor, cosines: Tensor) -> Tensor:
    error = (vectors @ vectors.T - cosines).square()  # (batch, batch)
    pairs = len(vectors) * (len(vectors) - 1)
    return (error.sum() - error.diagonal().sum()) / pairs


def leading_directions(vectors: HalfRows, width: int) -> Tensor:
    """Returns the axes (dim, width) of the largest variance about zero, the largest first.

    A rotation to these axes keeps the teacher's cosines, and its first dimensions carry the most
    information: the vectors of a student that learns them can be truncated.
    """
    moments = torch.zeros(vectors.shape[1], vectors.shape[1], dtype=torch.float64)  # (dim, dim)
    for start in range(0, len(vectors), CHUNK_ROWS):
        chunk = torch.from_numpy(vectors[start : start + CHUNK_ROWS]).double()  # (chunk, dim)
        moments += chunk.T @ chunk
    axes = torch.linalg.eigh(moments).eigenvectors.flip(1)  # (dim, dim), largest first
    # The sign of an axis is arbitrary; this choice makes runs repeatable.
    largest = axes.gather(0, axes.abs().argmax(dim=0, keepdim=True))  # (1, dim)
    signed: Tensor = axes * largest.sign()  # (dim, dim)
    return signed[:, :width].float()


def aligned_directions(teacher: Tensor, student: Tensor) -> Tensor:
    """Returns the axes (teacher dim, student dim) that rotate the teacher's vectors closest to the
    student's (orthogonal Procrustes).

    A student that is trained further keeps the axes that it has learned.
    """
    left, _, right = torch.linalg.svd(teacher.double().T @ student.double(), full_matrices=False)
    axes: Tensor = left @ right  # (teacher dim, student dim)
    return axes.float()


def neighbour_order(
    targets: NDArray[np.float32], neighbours: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Returns an order of all sentences in which those next to each other are close.

    Sentences at random are unrelated, and a student that only compares those learns little about
    which of two close sentences is closer. So every sentence goes to the nearest of some sentences
    drawn at random; the sentences of one of them, `neighbours` at most, follow each other, and such
    runs are in random order. `targets` are (sentences, dim), leading dimensions first.
    """
    vectors = targets[:, :COMPARED_DIMENSIONS]
    centres = random.permutation(len(vectors))[: max(1, len(vectors) // neighbours)]
    nearest = np.empty(len(vectors), dtype=np.int64)
    for start in range(0, len(vectors), COMPARED_ROWS):
        cosines = vectors[start : start + COMPARED_ROWS] @ vectors[centres].T  # (chunk, centres)
        nearest[start : start + COMPARED_ROWS] = cosines.argmax(axis=1)
    shuffled = random.permutation(len(vectors))
    by_centre = shuffled[np.argsort(nearest[shuffled], kind="stable")]  # (sentences,)
    # A run ends after so many sentences, or where the next centre begins.
    centre_of = nearest[by_centre]
    starts = np.flatnonzero(np.r_[True, centre_of[1:] != centre_of[:-1]])
    place = np.arange(len(by_centre)) - np.repeat(starts, np.diff(np.r_[starts, len(by_centre)]))
    run = np.cumsum(place % neighbours == 0) - 1  # (sentences,)
    rank: NDArray[Any] = random.permutation(int(run[-1]) + 1)
    return by_centre[np.argsort(rank[run], kind="stable")]


def cut_batches(order: NDArray[np.int64], size: int) -> Iterator[list[int]]:
    """Yields batches of exactly `size` sentences, but for the last; one alone is left out."""
    for start in range(0, len(order), size):
        batch = order[start : start + size].tolist()
        if len(batch) > 1:
            yield batch


def group_batches(groups: list[Group], size: int, order: Iterable[int]) -> Iterator[list[int]]:
    """Yields batches of sentence positions: whole groups in this order, `size` sentences or more.

    A batch ends with the group that fills it.
    """
    starts = np.cumsum([0, *map(len, groups)]).tolist()
    batch: list[int] = []
    for group in order:
        batch += range(starts[group], starts[group + 1])
        if len(batch) >= size:
            yield batch
            batch = []
    if len(batch) > 1:  # a single sentence has no similarities
        yield batch


def agreement_by_source(
    encode: Callable[[list[str]], Any], sentences: Mapping[str, Sequence[str]], targets: HalfRows
) -> dict[str, float]:
    """Returns Spearman's correlation of the student's cosines with those of the targets, by source.

    All pairs of one source are compared. The targets are (all sentences, dim), in their order.
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
    unit = _unit(vectors)
    cosines: NDArray[np.floating[Any]] = (unit @ unit.T)[np.triu_indices(len(unit), 1)]
    return cosines
