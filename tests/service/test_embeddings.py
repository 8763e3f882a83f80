"""POST /v1/embeddings and /similarity: the vectors of the model, in OpenAI's shape."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from genpool.service import ServedModel
from tests.helpers.services import listening

TEXTS = ["a dog runs .", "the man sleeps", ""]


def unit(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)


def vectors_of(body: dict) -> np.ndarray:
    return np.array([row["embedding"] for row in body["data"]])


def test_vectors_are_those_of_the_model_with_length_one(
    client: TestClient, served: ServedModel
) -> None:
    answer = client.post("/v1/embeddings", json={"input": TEXTS})
    assert answer.status_code == 200
    body = answer.json()
    assert body["object"] == "list" and body["model"] == "tiny"
    assert [row["index"] for row in body["data"]] == [0, 1, 2]
    assert {row["object"] for row in body["data"]} == {"embedding"}
    assert body["usage"] == {"prompt_tokens": 7, "total_tokens": 7}
    expected, vectors = served.encoder.encode(TEXTS), vectors_of(body)
    assert np.abs(vectors - unit(expected)).max() <= 1e-6 and not vectors[2].any()
    one = client.post("/v1/embeddings", json={"input": TEXTS[0], "model": "tiny"}).json()
    assert np.abs(vectors_of(one) - unit(expected[:1])).max() <= 1e-6
    short = client.post("/v1/embeddings", json={"input": TEXTS, "dimensions": 3}).json()
    assert np.abs(vectors_of(short) - unit(expected[:, :3])).max() <= 1e-6
    asked = {"input": TEXTS, "encoding_format": "base64"}
    for row, vector in zip(
        client.post("/v1/embeddings", json=asked).json()["data"], vectors, strict=True
    ):
        values = np.frombuffer(base64.b64decode(row["embedding"]), "<f4")
        assert values == pytest.approx(vector, abs=1e-7)


def test_another_model_is_not_found(client: TestClient) -> None:
    answer = client.post("/v1/embeddings", json={"input": "a dog", "model": "text-embedding-3"})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (404, "model_not_found", "model")
    assert "'tiny'" in error["message"]


def test_the_client_of_openai_works(app: FastAPI, served: ServedModel) -> None:
    openai = pytest.importorskip("openai")
    with (
        listening(app) as address,
        openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client,
    ):
        for options in ({}, {"dimensions": 4}, {"encoding_format": "float"}):
            answer = client.embeddings.create(model="tiny", input=TEXTS, **options)
            vectors = np.array([row.embedding for row in answer.data])
            expected = unit(served.encoder.encode(TEXTS)[:, : options.get("dimensions")])
            assert np.abs(vectors - expected).max() <= 1e-6
            assert answer.usage.prompt_tokens == 7
        assert [model.id for model in client.models.list().data] == ["tiny"]


def test_cosines_of_two_groups(client: TestClient, served: ServedModel) -> None:
    body = client.post("/similarity", json={"first": TEXTS, "second": TEXTS[1]}).json()
    expected = served.encoder.similarity(TEXTS, TEXTS[1]).numpy()
    assert np.abs(np.array(body["similarities"]) - expected).max() <= 1e-6
    body = client.post("/similarity", json={"first": TEXTS[0], "second": TEXTS}).json()
    assert np.shape(body["similarities"]) == (1, 3) and body["model"] == "tiny"


def test_too_many_cosines_are_refused(client: TestClient) -> None:
    answer = client.post("/similarity", json={"first": ["a"] * 4, "second": ["b"] * 4})
    assert answer.status_code == 422
    assert "4 x 4 texts have more than 12 cosines" in answer.json()["error"]["message"]
    assert client.post("/similarity", json={"first": ["a"] * 4, "second": ["b"] * 3}).is_success
