"""8-bit graphs: smaller, and pointing the same way."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from genpool import SentenceEncoder
from genpool.config import EmbeddingSettings, Part, ProjectionSettings
from genpool.integrations.onnx import ExportError, OnnxEncoder, export, graph
from genpool.integrations.onnx.traced import TracedSentenceEncoder
from tests.helpers.small_models import MakeEncoder

from .onnx_comparison import SENTENCES, padded_vectors

WIDE = Part("stacked-bilstm", {"hidden_dim": 24, "layers": 2})


@pytest.fixture(scope="module")
def model(make_encoder: MakeEncoder) -> SentenceEncoder:
    pooling = Part("generalized", {"heads": 2, "hidden_dim": 32})
    embedding = EmbeddingSettings(word_dim=32, character_maps=16)
    projection = ProjectionSettings(dim=20)
    return make_encoder(pooling, WIDE, embedding=embedding, projection=projection)


@pytest.fixture(scope="module")
def exported(model: SentenceEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("onnx") / "int8"
    done = export(model, folder, int8=True)
    assert 0 < done.difference < 0.01
    return folder


def test_vectors_point_where_those_of_the_model_point(
    model: SentenceEncoder, exported: Path
) -> None:
    actual = np.asarray(OnnxEncoder.from_pretrained(exported).encode(SENTENCES))
    expected = padded_vectors(model, SENTENCES)
    assert not actual[1].any()  # no tokens
    for one, other in zip(np.delete(actual, 1, 0), np.delete(expected, 1, 0), strict=True):
        assert one @ other / np.linalg.norm(one) / np.linalg.norm(other) > 0.99
    assert np.abs(actual - expected).max() > 0  # it was rounded indeed


def test_every_matrix_is_in_8_bits(exported: Path) -> None:
    """4 LSTM directions, 2 heads of 2 layers, 1 projection; no product in single precision."""
    kinds = [node.op_type for node in onnx.load(exported / "model.onnx").graph.node]
    assert kinds.count("DynamicQuantizeLSTM") == 4
    assert kinds.count("MatMulInteger") == 5
    assert not {"LSTM", "MatMul", "Gemm"} & set(kinds)


def test_the_word_table_is_in_8_bits(model: SentenceEncoder, exported: Path) -> None:
    shape = list(model.embedding.words.shape)
    kinds = {
        tensor.data_type
        for tensor in onnx.load(exported / "model.onnx").graph.initializer
        if list(tensor.dims) == shape
    }
    assert kinds == {onnx.TensorProto.INT8}


def test_a_word_with_small_values_is_not_rounded_away(model: SentenceEncoder) -> None:
    """Every word has its own scale: one with values a thousand times smaller is as exact."""
    changed = copy.deepcopy(model)
    with torch.no_grad():
        changed.embedding.words[5] /= 1000
    exact = TracedSentenceEncoder(changed).words(torch.tensor([[4, 5]]))
    rounded = TracedSentenceEncoder(changed, int8=True).words(torch.tensor([[4, 5]]))
    largest = exact.abs().amax(dim=2, keepdim=True)
    assert 0 < ((exact - rounded).abs() / largest).max() <= 0.5 / 127 + 1e-6


def test_the_folder_holds_no_second_graph(exported: Path) -> None:
    names = {path.name for path in exported.iterdir()}
    assert names == {"config.json", "model.onnx", "tokenizer.json", "README.md"}
    assert "8-bit weights" in (exported / "README.md").read_text()


def test_rounding_that_turns_the_vectors_is_refused(
    model: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exported: Path
) -> None:
    def copy(source: object, path: Path) -> None:
        path.write_bytes((exported / "model.onnx").read_bytes())

    def rename(source: Path, target: Path, external_data: bool) -> None:
        source.rename(target)

    monkeypatch.setattr(graph, "write_graph", copy)
    monkeypatch.setattr(graph, "quantize_graph", rename)
    # The 8-bit graph is used for both: too far from the model for a cosine of nearly 1.
    monkeypatch.setattr(graph, "MAX_DIFFERENCE", 1.0)
    monkeypatch.setattr(graph, "MIN_COSINE", 1 - 1e-12)
    with pytest.raises(ExportError, match=r"1 - cosine is .* Export without int8"):
        export(model, tmp_path / "out", int8=True)
    assert list(tmp_path.iterdir()) == []
