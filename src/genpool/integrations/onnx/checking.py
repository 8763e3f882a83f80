"""Comparing a graph with PyTorch: a graph that returns other vectors is never left behind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genpool.errors import FolderError
from genpool.integrations.onnx.session import OnnxSession

#: largest difference of values up to 1; larger values may differ by this share
MAX_DIFFERENCE = 1e-5
#: smallest cosine between the vectors of 8-bit weights and those of the model
MIN_COSINE = 0.99


class ExportError(FolderError):
    """A model cannot be exported, or its graph differs from it; no folder was written.

    Example:
        >>> try:
        ...     export(model, "my-model-onnx", int8=True)
        ... except ExportError:
        ...     export(model, "my-model-onnx")
    """


class Trial(NamedTuple):
    """Inputs of a graph, and the vectors (batch, output_dim) that PyTorch computes from them."""

    name: str
    feeds: dict[str, NDArray[Any]]
    expected: NDArray[np.float32]


def check_graph(session: OnnxSession, trials: Iterable[Trial], int8: bool = False) -> float:
    """Returns the largest difference between a graph and PyTorch.

    Args:
        session: the graph.
        trials: inputs and expected vectors.
        int8: the weights are 8-bit, so that only the direction of the vectors is compared; the
            difference is then 1 - cosine.

    Raises:
        ExportError: the difference exceeds MAX_DIFFERENCE, or with int8 1 - MIN_COSINE.
    """
    largest = 0.0
    for trial in trials:
        try:
            vectors = session(trial.feeds)
        except FolderError as error:
            raise ExportError(
                f"the graph fails for {trial.name}, and was not kept: {error}"
            ) from None
        if vectors.shape != trial.expected.shape:
            raise ExportError(
                f"the graph returns vectors of shape {vectors.shape} for {trial.name}, PyTorch "
                f"{trial.expected.shape}; the graph was not kept."
            )
        measure = _one_minus_cosine if int8 else _difference
        difference = measure(vectors.astype(np.float64), trial.expected.astype(np.float64))
        limit = 1 - MIN_COSINE if int8 else MAX_DIFFERENCE
        if not difference <= limit:  # so that NaN is an error too
            measured = "1 - cosine" if int8 else "largest difference"
            raise ExportError(
                f"the graph does not return the vectors of the model for {trial.name}: {measured} "
                f"is {difference:.2g}, expected at most {limit:.2g}; the graph was not kept."
                + (" Export without int8." if int8 else "")
            )
        largest = max(largest, difference)
    return largest


def _difference(vectors: NDArray[np.float64], expected: NDArray[np.float64]) -> float:
    """The largest difference; relative where values exceed 1."""
    return float((np.abs(vectors - expected) / np.maximum(1, np.abs(expected))).max(initial=0))


def _one_minus_cosine(vectors: NDArray[np.float64], expected: NDArray[np.float64]) -> float:
    """The largest over the rows; two rows of zeros have cosine 1, one row of zeros cosine 0."""
    norms = np.linalg.norm(vectors, axis=1), np.linalg.norm(expected, axis=1)  # 2 x (batch,)
    product = norms[0] * norms[1]  # (batch,)
    cosines = (vectors * expected).sum(axis=1) / np.where(product == 0, 1, product)  # (batch,)
    cosines = np.where((norms[0] == 0) & (norms[1] == 0), 1, cosines)
    # `max` with `initial` would drop a NaN.
    return float((1 - cosines).max(initial=0)) if np.isfinite(cosines).all() else float("nan")
