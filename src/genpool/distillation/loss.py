"""What a student is trained for: the teacher's vectors, and the similarities between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

#: vectors whose moments are summed together
CHUNK_VECTORS = 65536


def distillation_loss(
    student: Tensor, teacher: Tensor, similarity: float, widths: Sequence[int] = ()
) -> Tensor:
    """Returns the mean of 1 - cosine, plus a weighted error of the batch's similarities.

    Args:
        student: the student's vectors (batch, dim).
        teacher: the vectors to learn (batch, dim).
        similarity: weight of the mean squared error of the matrix of cosines between the sentences
            of the batch. Its diagonal, which is 1 on both sides, is not counted.
        widths: the error of the cosines is the mean over the complete vectors and the first
            dimensions of them, of these numbers (Matryoshka). Default: none, complete vectors.

    Returns:
        A scalar tensor.
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


def leading_directions(vectors: NDArray[np.float16], width: int) -> Tensor:
    """Returns the axes (dim, width) of the largest variance about zero, the largest first.

    A rotation to these axes keeps the teacher's cosines, and its first dimensions carry the most
    information: the vectors of a student that learns them can be truncated.
    """
    moments = torch.zeros(vectors.shape[1], vectors.shape[1], dtype=torch.float64)  # (dim, dim)
    for start in range(0, len(vectors), CHUNK_VECTORS):
        chunk = torch.from_numpy(vectors[start : start + CHUNK_VECTORS]).double()  # (chunk, dim)
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
