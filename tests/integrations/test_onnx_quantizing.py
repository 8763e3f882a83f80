"""8-bit products are exact on every CPU, with and without instructions for 8-bit integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from genpool import SentenceEncoder
from genpool.config import Part
from genpool.integrations.onnx import OnnxEncoder, export
from genpool.integrations.onnx import graph as graphs
from genpool.integrations.onnx.graph import WEIGHT_INPUTS, make_weights_unsigned
from tests.helpers.small_models import MakeEncoder

from .onnx_comparison import SENTENCES, padded_vectors

onnxruntime = pytest.importorskip("onnxruntime")

INNER, COLUMNS = 300, 24


def integer_product(weights: NDArray[np.int8], zero_point: NDArray[np.int8]) -> onnx.ModelProto:
    """y = (x - 7) (W - zero point), in integers, as the quantizer writes it."""
    node = helper.make_node("MatMulInteger", ["x", "w", "x_zero", "w_zero"], ["y"])
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [None, INNER])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [None, COLUMNS])],
        [
            numpy_helper.from_array(weights, "w"),
            numpy_helper.from_array(np.array(7, np.uint8), "x_zero"),
            numpy_helper.from_array(zero_point, "w_zero"),
        ],
    )
    opset = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opset, ir_version=9)


@pytest.mark.parametrize("rows", [1, 5, 64])
def test_products_of_the_largest_weights_are_exact(rows: int) -> None:
    """Signed weights would saturate here on an x86 CPU without VNNI; NumPy's integers cannot."""
    random = np.random.default_rng(0)
    weights = random.choice(np.array([-128, -127, 127], np.int8), size=(INNER, COLUMNS))
    zero_point = random.integers(-3, 4, COLUMNS).astype(np.int8)
    inputs = random.integers(200, 256, (rows, INNER)).astype(np.uint8)
    model = integer_product(weights, zero_point)
    make_weights_unsigned(model)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (product,) = session.run(None, {"x": inputs})
    expected = (inputs.astype(int) - 7) @ (weights.astype(int) - zero_point.astype(int))
    np.testing.assert_array_equal(product, expected)


def test_a_weight_that_two_products_share_is_shifted_once() -> None:
    model = integer_product(np.full((INNER, COLUMNS), -5, np.int8), np.zeros(COLUMNS, np.int8))
    model.graph.node.append(helper.make_node("MatMulInteger", model.graph.node[0].input, ["z"]))
    make_weights_unsigned(model)
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    assert set(values["w"].flatten()) == {123} and set(values["w_zero"]) == {128}
    assert values["x_zero"] == 7  # inputs are unsigned from the start


@pytest.fixture(scope="module")
def model(make_encoder: MakeEncoder) -> SentenceEncoder:
    return make_encoder("max", Part("bilstm", {"hidden_dim": 16}))


def test_every_8_bit_weight_of_an_export_is_unsigned(
    model: SentenceEncoder, tmp_path: Path
) -> None:
    export(model, tmp_path / "out", int8=True)
    graph = onnx.load(tmp_path / "out" / "model.onnx").graph
    types = {tensor.name: tensor.data_type for tensor in graph.initializer}
    weights = [
        node.input[position]
        for node in graph.node
        for position in WEIGHT_INPUTS.get(node.op_type, ())
    ]
    assert len(weights) == 8  # two directions: two matrices, two zero points
    assert {types[name] for name in weights} == {TensorProto.UINT8}


def test_8_bit_weights_of_gigabytes_are_in_a_file_beside_the_graph(
    model: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "LARGE_BYTES", 0)
    export(model, tmp_path / "out", int8=True)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    expected_names = {"config.json", "model.onnx", "model.onnx.data", "tokenizer.json", "README.md"}
    assert names == expected_names
    vectors = np.asarray(OnnxEncoder.from_pretrained(tmp_path / "out").encode(SENTENCES[:1]))[0]
    expected = padded_vectors(model, SENTENCES[:1])[0]
    assert vectors @ expected / np.linalg.norm(vectors) / np.linalg.norm(expected) > 0.99
