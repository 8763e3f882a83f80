"""From a module to a file with its graph, compared with PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn

from genpool.errors import require_extra
from genpool.integrations.onnx.checking import ExportError, Trial, check_graph
from genpool.integrations.onnx.inputs import OUTPUT
from genpool.integrations.onnx.quantizing import quantize_graph
from genpool.integrations.onnx.quiet import quiet
from genpool.integrations.onnx.session import ONNX_FILE, OnnxSession
from genpool.pooling import POOLINGS

#: from this size on, weights go to a file beside the graph: a protocol buffer ends at 2 GB
LARGE_BYTES = 1 << 30
#: the graph before its weights are quantized; removed afterwards
_FLOAT_FILE = "float.onnx"

#: the dynamic dimensions of an input, by position, with their names
DynamicDims = Mapping[int, str]
#: makes the trials of a check; called when the graph is there, because they take time
MakeTrials = Callable[[], Iterable[Trial]]

Module = TypeVar("Module", bound=nn.Module)


@dataclass(frozen=True)
class GraphSource:
    """A module, and how to trace it.

    Attributes:
        module: the module; its graph is that of `module(*inputs)`.
        inputs: example inputs, with two or more in every dynamic dimension.
        input_names: their names in the graph.
        dynamic_dims: their dynamic dimensions.
        metadata: stored in the file.
    """

    module: nn.Module
    inputs: Sequence[Tensor]
    input_names: Sequence[str]
    dynamic_dims: Sequence[DynamicDims]
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_large(self) -> bool:
        """Whether the weights need a file of their own."""
        parameters = self.module.parameters()
        return sum(weight.numel() * weight.element_size() for weight in parameters) > LARGE_BYTES


def write_checked_graph(
    source: GraphSource,
    folder: Path,
    int8: bool,
    trials: MakeTrials,
    float_trials: MakeTrials | None = None,
) -> float:
    """Writes the graph into a folder and compares it with PyTorch.

    Args:
        source: the module to trace.
        folder: where the file goes.
        int8: quantize the weights to 8 bits.
        trials: what the finished graph is compared with.
        float_trials: with int8, what the graph is compared with before its weights are quantized.
            Default: None, the same trials.

    Returns:
        The largest difference (see `check_graph`).

    Raises:
        ExportError: there is no graph of the module, or it returns other vectors.
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
            raise ExportError(_explain_failure(error)) from error
        if program is None:
            raise ExportError("PyTorch's exporter returned no graph.")
        # No limit of size, because a weight that is still computed in the graph is not quantized.
        limit = 1 << 62
        optimizer.optimize_ir(program.model, input_size_limit=limit, output_size_limit=limit)
        program.model.metadata_props.update(source.metadata)
        program.save(path, external_data=source.is_large)


def as_float32_on_cpu(module: Module) -> Module:
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


def _explain_failure(error: Exception) -> str:
    """Everything in genpool can be traced; a class that a user has added may not."""
    cause = error.__cause__ or error
    return (
        f"PyTorch's exporter cannot make a graph of this model: {str(cause).splitlines()[0]} "
        f"Every pooling of genpool can be exported: {', '.join(POOLINGS)}."
    )
