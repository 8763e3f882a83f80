"""ONNX graphs: traced from a module, compared with PyTorch, quantized to 8 bits, and run.

On x86 CPUs without VNNI, onnxruntime multiplies signed 8-bit weights by an instruction that adds
two products in 16 bits, which saturates: results are then wrong, not only rounded. The weights that
the quantizer writes are made unsigned, which are multiplied exactly on every CPU.
"""

from __future__ import annotations

import io
import logging
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from genpool.errors import FolderError, require_extra
from genpool.pooling import POOLINGS
from genpool.tensors.arrays import unit_rows

if TYPE_CHECKING:
    import onnx

#: the graph's file in an exported folder, that of its weights if they are large, and its output
ONNX_FILE, ONNX_DATA, OUTPUT = "model.onnx", "model.onnx.data", "sentence_embedding"
#: the dimensions of an input, all of them dynamic
DIMENSIONS = ("batch", "time", "longest_word")
#: largest difference of values up to 1; larger values may differ by this share
MAX_DIFFERENCE = 1e-5
#: smallest cosine between the vectors of 8-bit weights and those of the model
MIN_COSINE = 0.99
#: operators whose weights onnxruntime can multiply in 8 bits
QUANTIZED_OPERATORS = ["MatMul", "Gemm", "LSTM"]
#: inputs that hold weights and their zero points, by quantized operator
WEIGHT_INPUTS = {"MatMulInteger": (1, 3), "DynamicQuantizeLSTM": (1, 2, 9, 11)}

#: tensors by the names of the graph's inputs
Inputs = Mapping[str, Tensor]


class ExportError(FolderError):
    """A model cannot be exported, or its graph differs from it; no folder was written.

    Example:
        >>> try:
        ...     export(model, "my-model-onnx", int8=True)
        ... except ExportError:
        ...     export(model, "my-model-onnx")
    """


@dataclass(frozen=True)
class Export:
    """The result of an export.

    Attributes:
        path: the folder that was written.
        difference: the largest difference from PyTorch that the check found; with int8 the largest
            1 - cosine.

    Example:
        >>> export(model, "my-model-onnx").difference < 1e-5
        True
    """

    path: Path
    difference: float


class Trial(NamedTuple):
    """Inputs of a graph, and the vectors (batch, output_dim) that PyTorch computes from them."""

    name: str
    inputs: Inputs
    expected: Tensor


class OnnxSession:
    """Runs a graph on the CPU, with as many threads as PyTorch uses."""

    def __init__(self, path: Path) -> None:
        with require_extra("running ONNX graphs", "onnx"):
            import onnxruntime
        self.path = path
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 4  # fatal; every failure is raised, too
        try:
            session = onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has many exception types without a common base
            raise FolderError(f"{path} is not a graph that onnxruntime can run: {error}") from None
        self._run = session.run
        self.input_names = [value.name for value in session.get_inputs()]

    def __call__(self, inputs: Inputs) -> NDArray[np.float32]:
        """Returns the output (batch, output_dim)."""
        feeds = {name: np.ascontiguousarray(tensor.numpy()) for name, tensor in inputs.items()}
        try:
            vectors: NDArray[np.float32] = self._run([OUTPUT], feeds)[0]
        except Exception as error:  # as above
            raise FolderError(f"{self.path} cannot be run: {error}") from None
        return vectors


def write_graph(module: nn.Module, inputs: Inputs, path: Path) -> None:
    """Traces the module and writes its graph; weights from 1.5 GB on are in a file beside it."""
    with require_extra("exporting to ONNX", "onnx"):
        import onnxruntime  # noqa: F401  (missing packages are reported before the work)
        from onnxscript import optimizer
    dimensions = [dict(enumerate(DIMENSIONS[: tensor.dim()])) for tensor in inputs.values()]
    with quiet():
        try:
            program = torch.onnx.export(
                module,
                tuple(inputs.values()),
                dynamo=True,
                input_names=list(inputs),
                output_names=[OUTPUT],
                dynamic_shapes=tuple(dimensions),
                verbose=False,
                optimize=False,
            )
        except torch.onnx.OnnxExporterError as error:
            # Everything in genpool can be traced; a class that a user has added may not.
            cause = str(error.__cause__ or error).splitlines()[0]
            raise ExportError(
                f"PyTorch's exporter cannot make a graph of this model: {cause} Every pooling of "
                f"genpool can be exported: {', '.join(POOLINGS)}."
            ) from error
        program = cast(torch.onnx.ONNXProgram, program)
        # No limit of size, because a weight that is still computed in the graph is not quantized.
        limit = 1 << 62
        optimizer.optimize_ir(program.model, input_size_limit=limit, output_size_limit=limit)
        program.save(path)


@contextmanager
def quiet() -> Iterator[None]:
    """Hides what PyTorch's exporter and onnxruntime's quantizer print, log and warn of."""
    disabled, handlers = logging.root.manager.disable, logging.root.handlers[:]
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):  # onnxscript 0.6 prints
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        # `logging.warning` adds a handler to a program that has none, and it would stay.
        logging.root.handlers[:] = handlers


def check_graph(session: OnnxSession, trials: Iterable[Trial], int8: bool = False) -> float:
    """Returns the largest difference between a graph and PyTorch; with int8 of 1 - cosine."""
    measure, measured, limit = _difference, "largest difference", MAX_DIFFERENCE
    if int8:
        measure, measured, limit = _one_minus_cosine, "1 - cosine", 1 - MIN_COSINE
    largest = 0.0
    for trial in trials:
        try:
            vectors = session(trial.inputs)
        except FolderError as error:
            problem = f"the graph fails for {trial.name}, and was not kept: {error}"
            raise ExportError(problem) from None
        if vectors.shape != trial.expected.shape:
            raise ExportError(
                f"the graph returns vectors of shape {vectors.shape} for {trial.name}, PyTorch "
                f"{tuple(trial.expected.shape)}; the graph was not kept."
            )
        difference = measure(vectors.astype(np.float64), trial.expected.double().numpy())
        if not difference <= limit:  # so that NaN is an error too
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
    cosines = (unit_rows(vectors) * unit_rows(expected)).sum(axis=1)  # (batch,)
    cosines[~(vectors.any(axis=1) | expected.any(axis=1))] = 1
    # `max` with `initial` would drop a NaN.
    return float((1 - cosines).max(initial=0)) if np.isfinite(cosines).all() else float("nan")


def quantize_graph(path: Path) -> None:
    """Replaces a graph by one with 8-bit weights; inputs are quantized as they come."""
    with require_extra("quantizing an ONNX graph", "onnx"):
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic
    data = path.with_name(ONNX_DATA)
    is_large, graph = data.exists(), onnx.load(path)
    # Some matrices are transposed on the way, and recorded shapes would contradict them.
    del graph.graph.value_info[:]
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch, quiet():
        signed = Path(scratch) / ONNX_FILE
        quantize_dynamic(
            graph,
            signed,
            op_types_to_quantize=QUANTIZED_OPERATORS,
            per_channel=True,
            weight_type=QuantType.QInt8,
            use_external_data_format=is_large,
        )
        quantized = onnx.load(signed)
    make_weights_unsigned(quantized)
    data.unlink(missing_ok=True)  # it would be extended
    onnx.save(quantized, path, save_as_external_data=is_large, location=ONNX_DATA)


def make_weights_unsigned(model: onnx.ModelProto) -> None:
    """Shifts signed 8-bit weights and their zero points by 128, which changes no product."""
    from onnx import numpy_helper

    initializers = {tensor.name: tensor for tensor in model.graph.initializer}
    names = {
        node.input[position]
        for node in model.graph.node
        for position in WEIGHT_INPUTS.get(node.op_type, ())
    }
    for name in names & set(initializers):
        signed: Any = numpy_helper.to_array(initializers[name])
        if signed.dtype == np.int8:
            unsigned = (signed.astype(np.int16) + 128).astype(np.uint8)  # 0 ... 255
            initializers[name].CopyFrom(numpy_helper.from_array(unsigned, name))
