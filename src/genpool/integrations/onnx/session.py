"""A graph file, open in onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from genpool.errors import FolderError
from genpool.integrations.onnx.extra import onnx_extra

GRAPH = "model.onnx"
_TYPES = {"tensor(int64)": "int64", "tensor(bool)": "bool", "tensor(float)": "float32"}


class Graph:
    """Runs a graph of one output on the CPU, with as many threads as PyTorch uses."""

    def __init__(self, path: Path) -> None:
        with onnx_extra("running ONNX graphs"):
            import onnxruntime as runtime
        self.path = path
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 4  # what goes wrong is raised, too
        try:
            self._session = runtime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # the library has an exception of its own for every fault
            raise FolderError(_why_not(path, error)) from None

    @property
    def inputs(self) -> dict[str, tuple[str, int]]:
        """Number type and number of dimensions of every input, by name."""
        return {each.name: _kind(each) for each in self._session.get_inputs()}

    @property
    def outputs(self) -> dict[str, list[int | str]]:
        """The sizes of every output, by name; a free size has a name instead of a number."""
        return {each.name: list(each.shape) for each in self._session.get_outputs()}

    @property
    def notes(self) -> dict[str, str]:
        """The metadata of the file."""
        return dict(self._session.get_modelmeta().custom_metadata_map)

    def __call__(self, feeds: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
        try:
            vectors: NDArray[np.float32] = self._session.run(None, feeds)[0]
        except Exception as error:  # as above
            raise FolderError(f"{self.path} cannot be run: {error}") from None
        return vectors


def _kind(value: Any) -> tuple[str, int]:
    return _TYPES.get(value.type, value.type), len(value.shape)


def _why_not(path: Path, error: Exception) -> str:
    with path.open("rb") as file:
        start = file.read(4)
    if start[:1] == b"\x80" or start == b"PK\x03\x04":
        return (
            f"{path} holds a pickle, which could run code, in place of an ONNX graph; it was not "
            "opened."
        )
    return f"{path} is not a graph that onnxruntime can run: {error}"
