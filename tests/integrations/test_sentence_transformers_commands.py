"""A saved sentence-transformers folder with genpool's pooling, in the commands of genpool."""

from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from genpool.errors import FolderError, InputError
from genpool.integrations.load_encoder import (
    SentenceTransformerEncoder,
    load_encoder,
    load_explainable,
)
from genpool.integrations.sentence_transformers import load
from tests.helpers.commands import Command
from tests.integrations.tiny_bert import (
    SENTENCES,
    encode_features,
    tiny_model,
    tiny_transformer,
)

onnxruntime = pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Transformer, generalized pooling and normalization."""
    folder = tmp_path_factory.mktemp("commands")
    tiny_model(folder / "bert").save(str(folder / "saved"))
    return folder / "saved"


def test_it_encodes_as_sentence_transformers_does(saved: Path) -> None:
    encoder = load_encoder(saved)
    assert isinstance(encoder, SentenceTransformerEncoder)
    expected = load(saved, device="cpu").encode(SENTENCES)
    np.testing.assert_allclose(encoder.encode(SENTENCES), expected, atol=1e-6)
    assert encoder.output_dim == expected.shape[1]
    cosines = expected @ expected.T  # of length 1 already
    np.testing.assert_allclose(encoder.similarity(SENTENCES, SENTENCES), cosines, atol=1e-5)
    words = [sentence.split() for sentence in SENTENCES]
    np.testing.assert_allclose(encoder.encode_tokenized(words), expected, atol=1e-6)


def test_a_genpool_folder_is_loaded_as_before(rules_run: Path) -> None:
    assert load_encoder(rules_run / "best").output_dim
    assert type(load_explainable(rules_run / "best")).__name__ == "PairClassifier"
    with pytest.raises(FolderError):
        load_encoder(rules_run / "missing")


def test_encode_similarity_and_explain_read_the_folder(
    saved: Path, tmp_path: Path, genpool: Command
) -> None:
    (tmp_path / "sentences.txt").write_text("\n".join(SENTENCES) + "\n")
    genpool("encode", saved, tmp_path / "sentences.txt", "-o", tmp_path / "vectors.npy").ok()
    expected = load(saved, device="cpu").encode(SENTENCES)
    np.testing.assert_allclose(np.load(tmp_path / "vectors.npy"), expected, atol=1e-5)
    said = genpool("similarity", SENTENCES[0], SENTENCES[1], "--model", saved)
    assert float(said.out) == pytest.approx(float(expected[0] @ expected[1]), abs=1e-4)
    said = genpool("explain", SENTENCES[0], "--model", saved).ok()
    assert "sleeps" in said.out and "head 3" in said.out
    genpool("explain", SENTENCES[0], SENTENCES[1], "--model", saved).ok()


def test_the_explanation_has_the_weights_of_the_pooling(saved: Path) -> None:
    model = load(saved, device="cpu")
    encoder = SentenceTransformerEncoder(model)
    explanation = encoder.explain(SENTENCES[0])
    (features,) = encode_features(model, [SENTENCES[0]])
    expected = features["head_weights"].numpy()  # (heads, time, dim)
    np.testing.assert_allclose(explanation.weights, expected, atol=1e-6)
    names = [token.text for token in explanation.tokens]
    assert names == ["[CLS]", "a", "man", "sleeps", ".", "[SEP]"]
    place = explanation.tokens[3]
    assert SENTENCES[0][place.start : place.end] == "sleeps"
    assert explanation.tokens[0].start == -1
    np.testing.assert_allclose(
        explanation.vectors.vector, features["sentence_embedding"].numpy(), atol=1e-6
    )


def test_export_writes_all_modules_as_one_graph(
    saved: Path, tmp_path: Path, genpool: Command
) -> None:
    genpool("export", saved, tmp_path / "onnx").ok()
    session = onnxruntime.InferenceSession(str(tmp_path / "onnx" / "model.onnx"))
    model = load(saved, device="cpu")
    tokenizer = model.tokenizer
    inputs = dict(tokenizer(SENTENCES, padding=True, return_tensors="np"))
    names = [node.name for node in session.get_inputs()]
    (vectors,) = session.run(None, {name: inputs[name] for name in names})
    np.testing.assert_allclose(vectors, model.encode(SENTENCES), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)  # Normalize is in it
    assert (tmp_path / "onnx" / "tokenizer.json").is_file()


def test_another_pooling_can_be_encoded_but_not_explained(tmp_path: Path) -> None:
    from sentence_transformers.sentence_transformer.modules import Pooling

    transformer = tiny_transformer(tmp_path / "bert")
    model = SentenceTransformer(modules=[transformer, Pooling(16)])
    model.save(str(tmp_path / "saved"))
    encoder = load_encoder(tmp_path / "saved")
    assert encoder.encode(SENTENCES).shape == (3, 16)
    with pytest.raises(InputError, match=r"Transformer, Pooling; expected genpool's"):
        encoder.explain(SENTENCES[0])
