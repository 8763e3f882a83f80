"""8-bit weights that every CPU multiplies exactly.

onnxruntime multiplies unsigned inputs by weights of either sign. On x86 CPUs without VNNI, signed
8-bit weights go through an instruction that adds two products in 16 bits, which saturates: results
are then wrong, not only rounded. Unsigned weights are multiplied exactly on every CPU, so the
signed weights that the quantizer writes are shifted by 128, together with their zero points.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from genpool.errors import require_extra
from genpool.integrations.onnx.quiet import quiet

if TYPE_CHECKING:
    import onnx

#: operators whose weights onnxruntime can multiply in 8 bits
QUANTIZED_OPERATORS = ["MatMul", "Gemm", "LSTM"]
#: inputs that hold weights and their zero points, by quantized operator
WEIGHT_INPUTS = {"MatMulInteger": (1, 3), "DynamicQuantizeLSTM": (1, 2, 9, 11)}
#: what turns the signed range -128 ... 127 into 0 ... 255
UNSIGNED_SHIFT = 128


def quantize_graph(source: Path, target: Path, external_data: bool) -> None:
    """Writes the graph of `source` with 8-bit weights; inputs are quantized as they come.

    external_data: the weights go to a file beside the graph.
    """
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
    onnx.save(
        quantized,
        target,
        save_as_external_data=external_data,
        location=f"{target.name}.data",
    )


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
