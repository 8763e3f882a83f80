"""Heads as the vectors of a sentence, for late interaction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import MultiVectorEncoder, SentenceTransformer
from torch import nn

from genpool import SentenceEncoder
from genpool.errors import InputError
from genpool.integrations.sentence_transformers import HeadVectors, load
from tests.integrations.tiny_bert import SENTENCES, WIDTH, lively_pooling, tiny_transformer


@pytest.fixture
def model(tmp_path: Path) -> MultiVectorEncoder:
    modules: list[nn.Module] = [
        tiny_transformer(tmp_path / "bert"),
        lively_pooling(),
        HeadVectors(WIDTH),
    ]
    return MultiVectorEncoder(modules=modules)


def maxsim(query: np.ndarray, document: np.ndarray) -> float:
    """For every vector of the query, the best of the document's."""
    return sum(max(float(a @ b) for b in document) for a in query)


def test_every_sentence_has_one_vector_per_head(model: MultiVectorEncoder) -> None:
    pooled = SentenceTransformer(modules=list(model)[:2]).encode(SENTENCES)
    heads = pooled.reshape(len(SENTENCES), 3, WIDTH)
    actual = model.encode_document(SENTENCES, convert_to_numpy=True)
    for vectors, expected in zip(actual, heads, strict=True):
        lengths = np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose(vectors, expected / lengths, atol=1e-5)
    assert model.get_embedding_dimension() == WIDTH


def test_maxsim_compares_the_heads(model: MultiVectorEncoder) -> None:
    queries = model.encode_query(SENTENCES[:2])
    documents = model.encode_document(SENTENCES)
    scores = model.similarity(queries, documents)
    by_hand = [[maxsim(a.numpy(), b.numpy()) for b in documents] for a in queries]
    np.testing.assert_allclose(scores.numpy(), by_hand, atol=1e-5)
    assert scores.argmax(dim=1).tolist() == [0, 1], "a sentence is nearest to itself"


def test_a_model_of_heads_comes_back(model: MultiVectorEncoder, tmp_path: Path) -> None:
    model.save(str(tmp_path / "saved"))
    actual = load(tmp_path / "saved", MultiVectorEncoder)
    assert isinstance(actual, MultiVectorEncoder)
    for ours, theirs in zip(
        actual.encode_document(SENTENCES), model.encode_document(SENTENCES), strict=True
    ):
        assert torch.equal(ours, theirs)


def test_a_genpool_folder_opens_with_its_heads(
    sentence_encoder: SentenceEncoder, tmp_path: Path
) -> None:
    sentence_encoder.save_pretrained(tmp_path / "model")
    model = load(tmp_path / "model", MultiVectorEncoder)
    actual = model.encode_document(SENTENCES)
    heads = np.asarray(sentence_encoder.encode(SENTENCES)).reshape(len(SENTENCES), 2, -1)
    for vectors, expected in zip(actual, heads, strict=True):
        lengths = np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose(vectors.numpy(), expected / lengths, atol=1e-5)


def test_lengths_are_kept_where_asked_and_the_features_are_not_changed() -> None:
    heads, mask = torch.randn(2, 3, WIDTH), torch.ones(2, 7)
    features = {"head_vectors": heads, "attention_mask": mask, "cu_seq_lens_q": torch.arange(3)}
    result = HeadVectors(WIDTH, normalize=False)(features)
    assert torch.equal(result["token_embeddings"], heads)
    assert result["attention_mask"].shape == (2, 3) and "cu_seq_lens_q" not in result
    assert features["attention_mask"] is mask and "token_embeddings" not in features


def test_heads_must_be_there() -> None:
    with pytest.raises(InputError, match=r"expected \(batch, heads, 16\): put this module after"):
        HeadVectors(WIDTH)({"token_embeddings": torch.zeros(1, 2, WIDTH)})
