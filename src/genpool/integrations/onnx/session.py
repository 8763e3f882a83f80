"""An ONNX file, open in onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from genpool.errors import FolderError, require_extra

#: the graph's file in an exported folder
ONNX_FILE = "model.onnx"
_TYPES = {"tensor(int64)": "int64", "tensor(bool)": "bool", "tensor(float)": "float32"}
#: the level that onnxruntime calls fatal; every failure is raised, too
_LOG_FATAL = 4


class OnnxSession:
    """Runs a graph with one output on the CPU, with as many threads as PyTorch uses."""

    def __init__(self, path: Path) -> None:
        with require_extra("running ONNX graphs", "onnx"):
            import onnxruntime
        self.path = path
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = _LOG_FATAL
        try:
            self._session = onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has many exception types without a common base
            raise FolderError(_explain_failure(path, error)) from None

    @property
    def inputs(self) -> dict[str, tuple[str, int]]:
        """Data type and number of dimensions of every input, by name."""
        return {
            value.name: (_TYPES.get(value.type, value.type), len(value.shape))
            for value in self._session.get_inputs()
        }

    @property
    def outputs(self) -> dict[str, list[int | str]]:
        """The shape of every output, by name; a dynamic dimension has a name instead of a size."""
        return {value.name: list(value.shape) for value in self._session.get_outputs()}

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of the file."""
        return dict(self._session.get_modelmeta().custom_metadata_map)

    def __call__(self, feeds: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Returns the output (batch, output_dim) for arrays by the names of the inputs."""
        try:
            vectors: NDArray[np.float32] = self._session.run(None, feeds)[0]
        except Exception as error:  # as above
            raise FolderError(f"{self.path} cannot be run: {error}") from None
        return vectors


def _explain_failure(path: Path, error: Exception) -> str:
    with path.open("rb") as file:
        start = file.read(4)
    if start[:1] == b"\x80" or start == b"PK\x03\x04":
        return (
            f"{path} contains a pickle, which could run code, instead of an ONNX graph; it was not "
            "opened."
        )
    return f"{path} is not a graph that onnxruntime can run: {error}"
