"""ONNX graphs: written from a module, compared with PyTorch, quantized to 8 bits, and run.

A graph that returns other vectors than the module is never left behind.

onnxruntime multiplies unsigned inputs by weights of either sign. On x86 CPUs without VNNI, signed
8-bit weights go through an instruction that adds two products in 16 bits, which saturates: results
are then wrong, not only rounded. Unsigned weights are multiplied exactly on every CPU, so the
signed weights that the quantizer writes are shifted by 128, together with their zero points.
"""

from __future__ import annotations

import io
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from genpool.errors import FolderError, require_extra
from genpool.pooling import POOLINGS
from genpool.tensors.unit_rows import unit_rows

if TYPE_CHECKING:
    import onnx

#: the graph's file in an exported folder, and the name of its output
ONNX_FILE, OUTPUT = "model.onnx", "sentence_embedding"
#: the graph before its weights are quantized; removed afterwards
_FLOAT_FILE = "float.onnx"
#: from this size on, weights go to a file beside the graph: a protocol buffer ends at 2 GB
LARGE_BYTES = 1 << 30
#: largest difference of values up to 1; larger values may differ by this share
MAX_DIFFERENCE = 1e-5
#: smallest cosine between the vectors of 8-bit weights and those of the model
MIN_COSINE = 0.99
#: operators whose weights onnxruntime can multiply in 8 bits
QUANTIZED_OPERATORS = ["MatMul", "Gemm", "LSTM"]
#: inputs that hold weights and their zero points, by quantized operator
WEIGHT_INPUTS = {"MatMulInteger": (1, 3), "DynamicQuantizeLSTM": (1, 2, 9, 11)}
#: what turns the signed range -128 ... 127 into 0 ... 255
UNSIGNED_SHIFT = 128

_TYPES = {"tensor(int64)": "int64", "tensor(bool)": "bool", "tensor(float)": "float32"}
#: the level that onnxruntime calls fatal; every failure is raised, too
_LOG_FATAL = 4

#: the arrays of one run, by the names of the graph's inputs
Feeds = dict[str, NDArray[Any]]
AnyModule = TypeVar("AnyModule", bound=nn.Module)


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


@dataclass(frozen=True)
class GraphSource:
    """A module, and how to trace it: the graph is that of `module(*inputs)`.

    The example inputs have two or more in every dynamic dimension; `dynamic_dims` names these
    dimensions of each input by their positions. The metadata is stored in the file.
    """

    module: nn.Module
    inputs: Sequence[Tensor]
    input_names: Sequence[str]
    dynamic_dims: Sequence[Mapping[int, str]]
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_large(self) -> bool:
        """Whether the weights need a file of their own."""
        parameters = self.module.parameters()
        return sum(weight.numel() * weight.element_size() for weight in parameters) > LARGE_BYTES


class Trial(NamedTuple):
    """Inputs of a graph, and the vectors (batch, output_dim) that PyTorch computes from them."""

    name: str
    feeds: Feeds
    expected: NDArray[np.float32]


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
            session = onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has many exception types without a common base
            raise _unusable(path, error) from None
        self._run = session.run
        #: data type and number of dimensions of every input, by name
        self.inputs = {
            value.name: (_TYPES.get(value.type, value.type), len(value.shape))
            for value in session.get_inputs()
        }
        #: the shape of every output; a dynamic dimension has a name instead of a size
        self.outputs = {value.name: list(value.shape) for value in session.get_outputs()}
        self.metadata: dict[str, str] = dict(session.get_modelmeta().custom_metadata_map)

    def __call__(self, feeds: Feeds) -> NDArray[np.float32]:
        """Returns the output (batch, output_dim)."""
        try:
            vectors: NDArray[np.float32] = self._run(None, feeds)[0]
        except Exception as error:  # as above
            raise FolderError(f"{self.path} cannot be run: {error}") from None
        return vectors


def _unusable(path: Path, error: Exception) -> FolderError:
    with path.open("rb") as file:
        start = file.read(4)
    if start[:1] == b"\x80" or start == b"PK\x03\x04":
        return FolderError(
            f"{path} contains a pickle, which could run code, instead of an ONNX graph; it was not "
            "opened."
        )
    return FolderError(f"{path} is not a graph that onnxruntime can run: {error}")


# --- writing


def write_checked_graph(
    source: GraphSource,
    folder: Path,
    int8: bool,
    trials: Callable[[], Iterable[Trial]],
    float_trials: Callable[[], Iterable[Trial]] | None = None,
) -> float:
    """Writes the graph into a folder and returns its largest difference from PyTorch.

    The trials take time, and are made when the graph is there. With int8, `float_trials` are for
    the graph before its weights are quantized, the same ones if None.
    """
    path = folder / ONNX_FILE
    if not int8:
        write_graph(source, path)
        return check_graph(OnnxSession(path), trials())
    exact = folder / _FLOAT_FILE
    write_graph(source, exact)
    check_graph(OnnxSession(exact), (float_trials or trials)())
    quantize_graph(exact, path, source.is_large)
    for file in folder.glob(f"{_FLOAT_FILE}*"):
        file.unlink()
    return check_graph(OnnxSession(path), trials(), int8=True)


def write_graph(source: GraphSource, path: Path) -> None:
    """Traces the module and writes its graph."""
    with require_extra("exporting to ONNX", "onnx"):
        import onnxruntime  # noqa: F401  (missing packages are reported before the work)
        from onnxscript import optimizer
    with eval_mode(source.module), quiet():
        try:
            program = torch.onnx.export(
                source.module,
                tuple(source.inputs),
                dynamo=True,
                input_names=list(source.input_names),
                output_names=[OUTPUT],
                dynamic_shapes=tuple(dict(dims) for dims in source.dynamic_dims),
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
        if program is None:
            raise ExportError("PyTorch's exporter returned no graph.")
        # No limit of size, because a weight that is still computed in the graph is not quantized.
        limit = 1 << 62
        optimizer.optimize_ir(program.model, input_size_limit=limit, output_size_limit=limit)
        program.model.metadata_props.update(source.metadata)
        program.save(path, external_data=source.is_large)


def as_float32_on_cpu(module: AnyModule) -> AnyModule:
    """Returns the module itself where it is in single precision on the CPU, else a copy that is."""
    parameters = list(module.parameters())
    if all(weight.device.type == "cpu" and weight.dtype is torch.float32 for weight in parameters):
        return module
    return deepcopy(module).cpu().float()


@contextmanager
def eval_mode(module: nn.Module) -> Iterator[None]:
    """Puts a module of any library into eval mode without gradients; restores it afterwards.

    The mode is set on the module, so that other threads see it too.
    """
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part in training:
            part.training = True


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


# --- checking


def check_graph(session: OnnxSession, trials: Iterable[Trial], int8: bool = False) -> float:
    """Returns the largest difference between a graph and PyTorch.

    With int8 only the direction of the vectors is compared; the difference is then 1 - cosine.
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
    cosines = (unit_rows(vectors) * unit_rows(expected)).sum(axis=1)  # (batch,)
    cosines[~(vectors.any(axis=1) | expected.any(axis=1))] = 1
    # `max` with `initial` would drop a NaN.
    return float((1 - cosines).max(initial=0)) if np.isfinite(cosines).all() else float("nan")


# --- 8 bits


def quantize_graph(source: Path, target: Path, external_data: bool) -> None:
    """Writes the graph of `source` with 8-bit weights; inputs are quantized as they come."""
    with require_extra("quantizing an ONNX graph", "onnx"):
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic
    graph = onnx.load(source)
    # Some matrices are transposed on the way, and recorded shapes would contradict them.
    del graph.graph.value_info[:]
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch, quiet():
        signed = Path(scratch) / target.name
        quantize_dynamic(
            graph,
            signed,
            op_types_to_quantize=QUANTIZED_OPERATORS,
            per_channel=True,
            weight_type=QuantType.QInt8,
            use_external_data_format=external_data,
        )
        quantized = onnx.load(signed)
    make_weights_unsigned(quantized)
    location = f"{target.name}.data"
    onnx.save(quantized, target, save_as_external_data=external_data, location=location)


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
            unsigned = (signed.astype(np.int16) + UNSIGNED_SHIFT).astype(np.uint8)
            initializers[name].CopyFrom(numpy_helper.from_array(unsigned, name))
