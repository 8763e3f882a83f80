"""From a module to a file with its graph, and from that to one with 8-bit weights."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from genpool.inference.batching import evaluation_mode
from genpool.integrations.onnx.checking import ExportError
from genpool.integrations.onnx.extra import onnx_extra
from genpool.pooling import POOLINGS

#: bytes of weights from which on they stand in a file of their own beside the graph: a protocol
#: buffer ends at 2 GB
LARGE = 1 << 30
#: what 8-bit weights are made of: what onnxruntime multiplies in 8 bits
ROUNDED = ["MatMul", "Gemm", "LSTM"]

#: the dimensions of an input that may have any size, by their place, with their names
Free = Mapping[int, str]


def write_graph(
    module: nn.Module,
    inputs: Sequence[Tensor],
    names: Sequence[str],
    free: Sequence[Free],
    output: str,
    path: Path,
    notes: Mapping[str, str],
) -> None:
    """Writes the graph of `module(*inputs)`; inputs need two or more of every free dimension.

    notes: kept in the file, as its metadata.
    """
    with onnx_extra("exporting to ONNX"):
        import onnxruntime  # noqa: F401  (asked for now, rather than after the work)
        from onnxscript import optimizer
    with evaluation_mode(module), _quiet():
        try:
            program = torch.onnx.export(
                module,
                tuple(inputs),
                dynamo=True,
                input_names=list(names),
                output_names=[output],
                dynamic_shapes=tuple(dict(each) for each in free),
                verbose=False,
                optimize=False,
            )
        except torch.onnx.OnnxExporterError as error:
            raise ExportError(_no_graph(error)) from error
        if program is None:
            raise ExportError("PyTorch's exporter gave no graph.")
        # Without a limit, because a weight that is still computed in the graph cannot be rounded.
        limit = 1 << 62
        optimizer.optimize_ir(program.model, input_size_limit=limit, output_size_limit=limit)
        program.model.metadata_props.update(notes)
        program.save(path, external_data=_is_large(module))


def round_graph(source: Path, target: Path) -> None:
    """The graph of `source` with 8-bit weights, their inputs rounded as they come."""
    with onnx_extra("rounding an ONNX graph to 8 bits"):
        import onnx
        from onnxruntime.quantization import quantize_dynamic
    graph = onnx.load(source)
    # Some matrices are turned on the way, and a size that was noted for them would contradict.
    del graph.graph.value_info[:]
    large = sum(each.stat().st_size for each in source.parent.glob(f"{source.name}*")) > LARGE
    with _quiet():
        quantize_dynamic(
            graph,
            target,
            op_types_to_quantize=ROUNDED,
            per_channel=True,
            use_external_data_format=large,
        )


def _no_graph(error: Exception) -> str:
    """Every room of genpool has a graph; what was added to them may not have one."""
    cause = error.__cause__ or error
    return (
        f"PyTorch's exporter cannot make a graph of this model: {str(cause).splitlines()[0]} "
        f"Every pooling of genpool can be exported: {', '.join(POOLINGS)}."
    )


def _is_large(module: nn.Module) -> bool:
    return sum(each.numel() * each.element_size() for each in module.parameters()) > LARGE


@contextmanager
def _quiet() -> Iterator[None]:
    """What PyTorch's exporter and onnxruntime's rounding say of their own insides is not shown."""
    disabled, handlers = logging.root.manager.disable, logging.root.handlers[:]
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        # `logging.warning` gives a program that has no handler one, which would stay.
        logging.root.handlers[:] = handlers
