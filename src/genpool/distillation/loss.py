"""What a student is asked for: the teacher's vectors, and the teacher's similarities."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional


def distillation_loss(student: Tensor, teacher: Tensor, similarity: float) -> Tensor:
    """Mean of 1 - cosine, plus `similarity` times the squared error of the matrix of cosines.

    student and teacher (batch, dim). The diagonal of the matrix, 1 on both sides, is not counted.
    """
    own = functional.normalize(student, dim=1)
    target = functional.normalize(teacher, dim=1)
    loss = 1 - (own * target).sum(dim=1).mean()
    if similarity and len(own) > 1:
        error = (own @ own.T - target @ target.T).square()  # (batch, batch)
        pairs = len(own) * (len(own) - 1)
        loss = loss + similarity * (error.sum() - error.diagonal().sum()) / pairs
    return loss


def leading_directions(vectors: NDArray[np.float16], width: int) -> Tensor:
    """The axes (dim, width) along which vectors spread most, first the widest.

    Turned to these axes the teacher's cosines stay what they are, but its first numbers say most:
    a student that learns the turned vectors can be cut short.
    """
    moments = torch.zeros(vectors.shape[1], vectors.shape[1], dtype=torch.float64)
    for start in range(0, len(vectors), 65536):
        part = torch.from_numpy(vectors[start : start + 65536]).double()  # (part, dim)
        moments += part.T @ part
    axes = torch.linalg.eigh(moments).eigenvectors.flip(1)  # (dim, dim), widest first
    # The sign of an axis is free; this choice makes a rerun turn the same way.
    largest = axes.gather(0, axes.abs().argmax(dim=0, keepdim=True))  # (1, dim)
    turned: Tensor = axes * largest.sign()
    return turned[:, :width].float()


def aligned_directions(teacher: Tensor, student: Tensor) -> Tensor:
    """The axes (teacher's dim, student's) that turn the teacher's vectors closest to a student's.

    For a student that goes on: it keeps the axes that it has learned. (Orthogonal Procrustes.)
    """
    left, _, right = torch.linalg.svd(teacher.double().T @ student.double(), full_matrices=False)
    turned: Tensor = left @ right
    return turned.float()
