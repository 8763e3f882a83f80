"""Whether a graph gives what PyTorch gives: a graph that does not is never left behind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genpool.errors import FolderError
from genpool.integrations.onnx.session import Graph

#: largest difference, for numbers up to 1; larger ones may differ by that share
TOLERANCE = 1e-5
#: smallest cosine between the vectors of 8-bit weights and those of the model
COSINE = 0.99


class ExportError(FolderError):
    """There is no graph of the model, or it differs from the model, so that it was not kept."""


class Trial(NamedTuple):
    """Inputs of a graph, and the vectors (batch, output_dim) that PyTorch makes of them."""

    name: str
    feeds: dict[str, NDArray[Any]]
    expected: NDArray[np.float32]


def check_graph(graph: Graph, trials: Iterable[Trial], rounded: bool = False) -> float:
    """Raises ExportError where the graph differs from PyTorch; gives the largest difference.

    rounded: the graph has 8-bit weights, and its vectors need only point the same way; the
    difference is then 1 - cosine.
    """
    worst = 0.0
    for trial in trials:
        try:
            found = graph(trial.feeds)
        except FolderError as error:
            raise ExportError(
                f"the graph fails for {trial.name}, and was not kept: {error}"
            ) from None
        if found.shape != trial.expected.shape:
            raise ExportError(
                f"the graph gives {found.shape} numbers for {trial.name}, PyTorch "
                f"{trial.expected.shape}; the graph was not kept."
            )
        measure = _one_minus_cosine if rounded else _difference
        difference = measure(found.astype(np.float64), trial.expected.astype(np.float64))
        limit = 1 - COSINE if rounded else TOLERANCE
        if not difference <= limit:  # so that NaN is an error too
            what = "1 - cosine" if rounded else "largest difference"
            raise ExportError(
                f"the graph does not give the vectors of the model for {trial.name}: {what} is "
                f"{difference:.2g}, at most {limit:.2g} was expected; the graph was not kept."
                + (" Export without int8." if rounded else "")
            )
        worst = max(worst, difference)
    return worst


def _difference(found: NDArray[np.float64], expected: NDArray[np.float64]) -> float:
    """The largest difference; where numbers are larger than 1, as a share of them."""
    return float((np.abs(found - expected) / np.maximum(1, np.abs(expected))).max(initial=0))


def _one_minus_cosine(found: NDArray[np.float64], expected: NDArray[np.float64]) -> float:
    """The largest of the rows; zeros are like zeros, and unlike everything else."""
    norms = np.linalg.norm(found, axis=1), np.linalg.norm(expected, axis=1)  # 2 x (batch,)
    both = norms[0] * norms[1]
    cosines = (found * expected).sum(axis=1) / np.where(both == 0, 1, both)
    cosines = np.where((norms[0] == 0) & (norms[1] == 0), 1, cosines)
    # The maximum of NaN is NaN only when it is asked for.
    return float((1 - cosines).max(initial=0)) if np.isfinite(cosines).all() else float("nan")
