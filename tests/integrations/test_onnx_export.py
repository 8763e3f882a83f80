"""Sentence encoders as ONNX graphs: the vectors of the model that each was made from."""

import copy
import json
import unicodedata
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch.onnx._internal.exporter import _onnx_program

from genpool import SentenceEncoder
from genpool.config import EmbeddingSettings, ModelSettings, Part, ProjectionSettings, TextSettings
from genpool.encoder import ENCODERS, BagOfWordsEncoder, Encoder
from genpool.errors import InputError
from genpool.integrations.onnx import ExportError, OnnxEncoder, export, graph
from genpool.integrations.onnx.graph import WEIGHT_INPUTS, make_weights_unsigned
from genpool.integrations.onnx.traced import TracedSentenceEncoder, require_traceable
from genpool.pooling import POOLINGS
from genpool.text import TextPipeline, Vocabulary, WordTokenizer
from genpool.text.vocabulary import SPECIAL_WORDS, CharacterNgrams
from tests.helpers import released_layers
from tests.helpers.small_models import MakeEncoder

from .onnx_comparison import SENTENCES, largest_difference, padded_vectors

onnxruntime = pytest.importorskip("onnxruntime")

BOTH = Part("stacked-bilstm", {"hidden_dim": 3, "layers": 2, "shortcut": "both"})
#: as in the authors' released program: filters start at a character, vectors are halved at test
RELEASED = EmbeddingSettings(
    word_dim=4,
    character_dim=3,
    character_maps=2,
    character_padding="right",
    dropout_scaling="test",
)
slow = pytest.mark.slow
#: an export takes seconds: every form of an encoder once, every pooling once, with other options.
#: The stacks of BiLSTM layers have one form, which takes the input of a layer from the encoder.
MODELS: list[Any] = [
    (BOTH, "generalized", {"projection": ProjectionSettings(dim=7)}),
    ("bilstm", "last", {"text": TextSettings(sentence_ends=True, max_length=9)}),
    pytest.param("shortcut-stacked", "gated", {}, marks=slow),
    (Part("lstm", {"hidden_dim": 5, "layers": 2}), "gated", {}),
    pytest.param(Part("gru", {"hidden_dim": 5, "layers": 2}), "inner", {}, marks=slow),
    ("cnn", "mean", {"embedding": RELEASED}),
    ("bag-of-words", "scalar", {"text": TextSettings(rules="whitespace")}),
    pytest.param("disan", "source-to-token", {}, marks=slow),
    pytest.param(Part("cafe", {"hidden_dim": 10, "factors": 3}), "mean-max", {}, marks=slow),
    pytest.param(
        "resan",
        "max",
        {"embedding": EmbeddingSettings(word_dim=4, characters=False)},
        marks=slow,
    ),
]
#: encoders whose control flow depends on the length of a sentence, or that read its syntax tree
REFUSED = {"nse", "spinn", "tree-cnn", "nti", "gumbel-tree"}


def test_every_pooling_is_among_them() -> None:
    assert {getattr(model, "values", model)[1] for model in MODELS} == set(POOLINGS)


@pytest.mark.parametrize(
    ("encoder", "pooling", "sections"), MODELS, ids=lambda value: str(value)[:40]
)
def test_the_graph_returns_the_vectors_of_the_padded_model(
    make_encoder: MakeEncoder,
    tmp_path: Path,
    encoder: str | Part,
    pooling: str,
    sections: dict[str, Any],
) -> None:
    model = make_encoder(pooling, encoder, **sections)
    if encoder == "bag-of-words":  # the graph is neither, and the model stays as it is
        model.double().train()
    assert export(model, tmp_path / "out").difference < 1e-6
    exported = OnnxEncoder.from_pretrained(tmp_path / "out")
    if encoder == "bag-of-words":
        assert model.dtype is torch.float64 and all(part.training for part in model.modules())
        assert largest_difference(exported, model) < 1e-6  # in double precision
        model.float().eval()
    expected = padded_vectors(model, SENTENCES)
    assert np.abs(expected[0] - expected[2]).max() > 1e-2  # sentences can be told apart
    for batch_size in (1, 2, 64):
        assert largest_difference(exported, model, batch_size) < 1e-6
    empty = np.asarray(exported.encode(["", ""]))
    assert empty.shape == (2, model.output_dim)
    assert bool(empty.any()) == model.text.sentence_ends  # ends are tokens, too


class Strange(BagOfWordsEncoder):
    """A kind of an encoder that has a form for graphs."""


class Foreign(Encoder):
    """An encoder that has none."""


def test_an_encoder_without_a_form_is_refused_and_nothing_is_written(
    make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    require_traceable(Strange(3))
    with pytest.raises(InputError, match=r"Foreign has no form .* stacked-bilstm, bilstm"):
        require_traceable(Foreign(3, 3))
    for name in REFUSED:
        with pytest.raises(InputError, match=r"has no form for an ONNX graph.*stacked-bilstm"):
            export(make_encoder("last", name), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    for name in set(ENCODERS) - REFUSED:
        require_traceable(make_encoder("mean", name).encoder)


def test_the_released_programs_layers_are_those_of_halved_weights(
    make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    model = released_layers.released_encoder(make_encoder, "mean")
    export(model, tmp_path / "out")
    halved = released_layers.with_halved_embedding(model)
    exported = OnnxEncoder.from_pretrained(tmp_path / "out")
    sentences = released_layers.SENTENCES
    np.testing.assert_allclose(
        exported.encode(sentences), halved.encode(sentences), rtol=0, atol=1e-5
    )
    assert exported.text.vocabulary.lower_case_fallback is False
    assert "lower-case" not in (tmp_path / "out" / "README.md").read_text()


# --- n-grams


@pytest.fixture(scope="module")
def ngram_model() -> SentenceEncoder:
    text = TextPipeline(
        WordTokenizer("parts", folding=True),
        Vocabulary([*SPECIAL_WORDS, "the", "dog", "runs", ".", "n't"], folding=True),
        CharacterNgrams(60, (3, 4)),
    )
    settings = ModelSettings(
        embedding=EmbeddingSettings(
            word_dim=5, characters=False, ngram_buckets=60, ngram_sizes=(3, 4)
        ),
        encoder=Part("bilstm", {"hidden_dim": 4, "layers": 1}),
        pooling=Part("generalized", {"heads": 2}),
    )
    torch.manual_seed(0)
    encoder = SentenceEncoder.from_settings(text, settings).eval()
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return encoder


def folded_by_hand(word: str) -> str:
    parts = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", word))
    return "".join(part for part in parts if unicodedata.category(part) != "Mn").lower()


def test_of_ngrams_the_readme_is_enough_to_make_the_inputs_without_genpool(
    ngram_model: SentenceEncoder, tmp_path: Path
) -> None:
    from tokenizers import Tokenizer

    export(ngram_model, tmp_path)
    exported = OnnxEncoder.from_pretrained(tmp_path)
    sentences = ["The dog's wug runs.", "blickets, daxes!", "", "w\u00fcg\u200bs don\u2019t"]
    expected = ngram_model.encode(sentences)
    assert np.abs(exported.encode(sentences) - expected).max() < 1e-5
    assert np.abs(expected[0] - expected[1]).max() > 0.05
    assert exported.text.vocabulary.folding and len(exported.text.characters) == 64
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "folded form" in page and "CRC-32" in page and "lower-case form" not in page
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    sizes, buckets = config["ngram_sizes"], config["ngram_buckets"]
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    for sentence in ("The dog's wug runs.", "THE DOG", "blickets, w\u00fcgs!"):
        split = tokenizer.pre_tokenizer.pre_tokenize_str(
            tokenizer.normalizer.normalize_str(sentence)
        )
        words = [folded_by_hand(word) for word, _ in split]
        ids = [tokenizer.token_to_id(word) or 1 for word in words]
        spelled = []
        for word, word_id in zip(words, ids, strict=True):
            marked = f"<{word[:40]}>"
            parts = [marked[at : at + n] for n in sizes for at in range(len(marked) - n + 1)]
            unknown = dict.fromkeys([marked, *parts]) if word_id == 1 else {}
            spelled.append([4 + zlib.crc32(part.encode()) % buckets for part in unknown])
        longest = max(1, *map(len, spelled))
        inputs = {
            "word_ids": np.array([ids]),
            "letters": np.array([[row + [0] * (longest - len(row)) for row in spelled]]),
            "mask": np.ones((1, len(ids)), dtype=bool),
        }
        [vectors] = session.run(["sentence_embedding"], inputs)
        assert np.abs(vectors[0] - ngram_model.encode(sentence)).max() < 1e-5


# --- 8 bits: smaller, and pointing the same way


@pytest.fixture(scope="module")
def model(make_encoder: MakeEncoder) -> SentenceEncoder:
    return make_encoder(
        Part("generalized", {"heads": 2, "hidden_dim": 32}),
        Part("stacked-bilstm", {"hidden_dim": 24, "layers": 2}),
        embedding=EmbeddingSettings(word_dim=32, character_maps=16),
        projection=ProjectionSettings(dim=20),
    )


@pytest.fixture(scope="module")
def int8_folder(model: SentenceEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the weights in a file of their own, as PyTorch writes them from 1.5 gigabytes on."""
    folder = tmp_path_factory.mktemp("onnx") / "int8"
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(_onnx_program, "_LARGE_MODEL_THRESHOLD", 0)
        assert 0 < export(model, folder, int8=True).difference < 0.01
    return folder


def test_matrices_and_tables_in_8_bits_turn_no_vector(
    model: SentenceEncoder, int8_folder: Path
) -> None:
    actual = np.asarray(OnnxEncoder.from_pretrained(int8_folder).encode(SENTENCES))
    expected = padded_vectors(model, SENTENCES)
    assert not actual[1].any()  # no tokens
    for one, other in zip(np.delete(actual, 1, 0), np.delete(expected, 1, 0), strict=True):
        assert one @ other / np.linalg.norm(one) / np.linalg.norm(other) > 0.99
    assert np.abs(actual - expected).max() > 0  # it was rounded indeed
    # 4 LSTM directions, 2 heads of 2 layers, 1 projection; no product in single precision.
    exported = onnx.load(int8_folder / "model.onnx").graph
    kinds = [node.op_type for node in exported.node]
    assert kinds.count("DynamicQuantizeLSTM") == 4
    assert kinds.count("MatMulInteger") == 5
    assert not {"LSTM", "MatMul", "Gemm"} & set(kinds)
    types = {tensor.name: tensor.data_type for tensor in exported.initializer}
    weights = [
        node.input[position]
        for node in exported.node
        for position in WEIGHT_INPUTS.get(node.op_type, ())
    ]
    assert len(weights) == 4 * 4 + 5 * 2  # matrices and their zero points
    assert {types[name] for name in weights} == {TensorProto.UINT8}
    shape = list(model.embedding.words.shape)
    tables = {t.data_type for t in exported.initializer if list(t.dims) == shape}
    assert tables == {TensorProto.INT8}
    names = {path.name for path in int8_folder.iterdir()}  # and there is no second graph
    assert names == {"config.json", "model.onnx", "model.onnx.data", "tokenizer.json", "README.md"}
    assert "8-bit weights" in (int8_folder / "README.md").read_text()


def test_a_word_with_small_values_is_not_rounded_away(model: SentenceEncoder) -> None:
    """Every word has its own scale: one with values a thousand times smaller is as exact."""
    changed = copy.deepcopy(model)
    with torch.no_grad():
        changed.embedding.words[5] /= 1000
    exact = TracedSentenceEncoder(changed).words(torch.tensor([[4, 5]]))
    rounded = TracedSentenceEncoder(changed, int8=True).words(torch.tensor([[4, 5]]))
    largest = exact.abs().amax(dim=2, keepdim=True)
    assert 0 < ((exact - rounded).abs() / largest).max() <= 0.5 / 127 + 1e-6


def test_rounding_that_turns_the_vectors_is_refused(
    model: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, int8_folder: Path
) -> None:
    def copy(*parts: object) -> None:
        target = parts[-1]
        assert isinstance(target, Path)
        for name in ("model.onnx", "model.onnx.data"):
            target.with_name(name).write_bytes((int8_folder / name).read_bytes())

    monkeypatch.setattr(graph, "write_graph", copy)
    monkeypatch.setattr(graph, "quantize_graph", copy)
    monkeypatch.setattr(graph, "MIN_COSINE", 1 - 1e-12)
    with pytest.raises(ExportError, match=r"1 - cosine is .* Export without int8"):
        export(model, tmp_path / "out", int8=True)
    assert list(tmp_path.iterdir()) == []


INNER, COLUMNS = 300, 24


def integer_product(weights: NDArray[np.int8], zero_point: NDArray[np.int8]) -> onnx.ModelProto:
    """y = (x - 7) (W - zero point), in integers, as the quantizer writes it."""
    node = helper.make_node("MatMulInteger", ["x", "w", "x_zero", "w_zero"], ["y"])
    content = helper.make_graph(
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
    return helper.make_model(content, opset_imports=opset, ir_version=9)


@pytest.mark.parametrize("rows", [1, 5, 64])
def test_products_of_the_largest_weights_are_exact(rows: int) -> None:
    """Signed weights would saturate here on an x86 CPU without VNNI; NumPy's integers cannot."""
    random = np.random.default_rng(0)
    weights = random.choice(np.array([-128, -127, 127], np.int8), size=(INNER, COLUMNS))
    zero_point = random.integers(-3, 4, COLUMNS).astype(np.int8)
    inputs = random.integers(200, 256, (rows, INNER)).astype(np.uint8)
    product_model = integer_product(weights, zero_point)
    make_weights_unsigned(product_model)
    session = onnxruntime.InferenceSession(product_model.SerializeToString())
    (product,) = session.run(None, {"x": inputs})
    expected = (inputs.astype(int) - 7) @ (weights.astype(int) - zero_point.astype(int))
    np.testing.assert_array_equal(product, expected)


def test_a_weight_that_two_products_share_is_shifted_once() -> None:
    shared = integer_product(np.full((INNER, COLUMNS), -5, np.int8), np.zeros(COLUMNS, np.int8))
    shared.graph.node.append(helper.make_node("MatMulInteger", shared.graph.node[0].input, ["z"]))
    make_weights_unsigned(shared)
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in shared.graph.initializer}
    assert set(values["w"].flatten()) == {123} and set(values["w_zero"]) == {128}
    assert values["x_zero"] == 7  # inputs are unsigned from the start
