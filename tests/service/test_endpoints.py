"""The endpoints: vectors, cosines, labels, explanations, search, and the model itself."""

import base64
from typing import Any

import numpy as np
import pytest
import torch
from fastapi import FastAPI
from fastapi.testclient import TestClient

from genpool import PairClassifier, SentenceEncoder, TextClassifier
from genpool.errors import FolderError, InputError
from genpool.service import ServedModel, ServiceSettings, create_app
from genpool.tensors.modules import torch_threads
from tests.helpers.services import listening
from tests.helpers.small_indexes import unit

FIRST, SECOND = "The red dog runs.", "A man sleeps"
TEXTS = ["a dog runs .", "the man sleeps", ""]


def client_of(model: ServedModel) -> TestClient:
    """A client without the fixture's limits; every request has an event loop of its own."""
    return TestClient(create_app(model))


# --- vectors, in OpenAI's shape, and cosines


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
    answer = client.post("/similarity", json={"first": ["a"] * 4, "second": ["b"] * 4})
    assert answer.status_code == 422
    assert "4 x 4 texts have more than 12 cosines" in answer.json()["error"]["message"]
    assert client.post("/similarity", json={"first": ["a"] * 4, "second": ["b"] * 3}).is_success


# --- classify


def test_pairs_get_labels_and_probabilities(client: TestClient, served: ServedModel) -> None:
    pairs = [(FIRST, SECOND), (SECOND, FIRST)]
    body = client.post("/classify", json={"input": pairs}).json()
    classifier = served.classifier
    assert isinstance(classifier, PairClassifier)
    assert body["labels"] == list(classifier.labels)
    assert [row["label"] for row in body["predictions"]] == classifier.predict(pairs)
    probabilities = np.array([row["probabilities"] for row in body["predictions"]])
    assert np.abs(probabilities - classifier.predict_proba(pairs)).max() <= 1e-6


def test_single_texts_get_labels_of_a_text_classifier(text_classifier: TextClassifier) -> None:
    client = client_of(ServedModel(text_classifier.encoder, text_classifier))
    for texts in (FIRST, [FIRST, SECOND]):
        body = client.post("/classify", json={"input": texts}).json()
        expected = text_classifier.predict([texts] if isinstance(texts, str) else texts)
        assert [row["label"] for row in body["predictions"]] == expected
    answer = client.post("/classify", json={"input": [[FIRST, SECOND]]})
    assert answer.status_code == 422 and "a list of texts" in answer.json()["error"]["message"]


#: by endpoint: a body, the field that is wrong in it, and its wrong values
REFUSED: dict[str, tuple[dict[str, Any], str, list[Any]]] = {
    "/classify": (
        {},
        "input",
        ["a dog", ["a dog", "a man"], [["a"]], [["a", "b", "c"]], [[1, 2]], [[]], {"a": "b"}, None],
    ),
    "/explain": ({}, "input", [[], ["a", "b", "c"], 3, [["a", "b"]]]),
    "/search": ({"query": "a dog"}, "top", [0, 101, "3", None]),
    "/v1/embeddings": ({"input": "a dog"}, "dimensions", [0, -1, 1000, "3", 2.5, True]),
}


def test_impossible_values_are_refused_with_the_name_of_the_field(client: TestClient) -> None:
    for path, (body, param, values) in REFUSED.items():
        for value in values:
            answer = client.post(path, json={**body, param: value})
            assert (answer.status_code, answer.json()["error"]["param"]) == (422, param), value
    answer = client.post("/classify", json={"input": ["a dog", "a man"]})
    assert "[[first, second], ...]" in answer.json()["error"]["message"]


def test_a_service_without_classifier_or_index_says_so(sentence_encoder: SentenceEncoder) -> None:
    client = client_of(ServedModel(sentence_encoder))
    for path, body, code in (
        ("/classify", {"input": [[FIRST, SECOND]]}, "no_classifier"),
        ("/search", {"query": "a"}, "no_index"),
    ):
        answer = client.post(path, json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, code)
    assert client.get("/v1/models").json()["data"][0]["classifier"] is None
    assert client.post("/explain", json={"input": [FIRST, SECOND]}).json()["prediction"] is None


# --- explain


def test_one_text_is_explained(client: TestClient, served: ServedModel) -> None:
    body = client.post("/explain", json={"input": FIRST}).json()
    assert body["sentences"][0].pop("dimension_weights") is None
    assert body["pair"] is None and body["prediction"] is None
    asked = {"input": FIRST, "dimension_weights": True}
    [sentence] = client.post("/explain", json=asked).json()["sentences"]
    coded = sentence.pop("dimension_weights")
    assert body["sentences"] == [sentence]
    expected = served.encoder.explain(FIRST)
    assert sentence["sentence"] == FIRST and not sentence["truncated"]
    assert [(token["text"], token["start"], token["end"]) for token in sentence["tokens"]] == [
        (token.text, token.start, token.end) for token in expected.tokens
    ]
    for name, values in [
        ("vector_influence", expected.vector_influence),
        ("head_influence", expected.head_influence),
        ("head_weights", expected.token_weights),
        ("head_overlap", expected.head_overlap),
    ]:
        assert np.abs(np.array(sentence[name]) - values).max() <= 1e-5, name
    values = np.frombuffer(base64.b64decode(coded["data"]), np.uint8).reshape(coded["shape"])
    assert values.shape == expected.weights.shape and values.max() == 255
    errors = np.abs(values / 255 * coded["scale"] - expected.weights)
    assert errors.max() <= coded["scale"] / 255 / 2 + 1e-6


def test_two_texts_are_compared_and_labelled(client: TestClient, served: ServedModel) -> None:
    body = client.post("/explain", json={"input": [FIRST, SECOND]}).json()
    classifier = served.classifier
    assert isinstance(classifier, PairClassifier)
    expected = classifier.explain(FIRST, SECOND)
    assert body["pair"]["similarity"] == pytest.approx(expected.similarity, abs=1e-6)
    assert body["pair"]["head_similarity"] == pytest.approx(expected.head_similarity, abs=1e-5)
    prediction = expected.prediction
    assert prediction is not None
    assert body["prediction"]["label"] == prediction.label
    assert body["prediction"]["probabilities"] == pytest.approx(prediction.probabilities)
    for side in range(2):
        influence = body["pair"]["similarity_influence"][side]
        assert influence == pytest.approx(expected.similarity_influence[side], abs=1e-5)
        influence = body["prediction"]["label_influence"][side]
        assert influence == pytest.approx(prediction.influence[side], abs=1e-5)
        tokens = body["sentences"][side]["tokens"]
        assert body["prediction"]["tokens"][side] == tokens
    asked = {"input": ["", FIRST], "dimension_weights": True}  # the first has no words
    body = client.post("/explain", json=asked).json()
    first = body["sentences"][0]
    assert first["tokens"] == [] and first["vector_influence"] == []
    assert first["dimension_weights"]["data"] == "" and body["pair"]["similarity"] == 0


def test_a_classifier_with_an_encoder_of_its_own_explains_its_own_tokens(
    sentence_encoder: SentenceEncoder, pair_classifier: PairClassifier
) -> None:
    pair_classifier.encoder.text.max_length = 2
    client = client_of(ServedModel(sentence_encoder, pair_classifier))
    body = client.post("/explain", json={"input": [FIRST, SECOND]}).json()
    assert [len(side) for side in body["prediction"]["tokens"]] == [2, 2]
    assert [len(side) for side in body["prediction"]["label_influence"]] == [2, 2]
    assert [len(side["tokens"]) for side in body["sentences"]] == [5, 3]


# --- search


def test_the_closest_sentences_of_the_index_are_returned(
    client: TestClient, served: ServedModel, make_encoder
) -> None:
    queries = ["a dog runs .", "the man rests"]
    body = client.post("/search", json={"query": queries, "top": 2}).json()
    assert [result["query"] for result in body["results"]] == queries
    assert served.index is not None
    expected = served.index.search(served.encoder.encode(queries), 2)
    for result, hits in zip(body["results"], expected, strict=True):
        assert [(hit["row"], hit["sentence"]) for hit in result["hits"]] == [
            (hit.row, hit.sentence) for hit in hits
        ]
        scores = [hit["score"] for hit in result["hits"]]
        assert scores == pytest.approx([hit.score for hit in hits], abs=1e-6)
    assert body["results"][0]["hits"][0]["sentence"] == queries[0]
    body = client.post("/search", json={"query": ["", "a dog"]}).json()
    assert [len(result["hits"]) for result in body["results"]] == [0, 3]  # without words none
    with pytest.raises(InputError, match="made with another model"):
        ServedModel(make_encoder(seed=5), None, served.index)


# --- the model


def test_the_model_describes_itself(client: TestClient, served: ServedModel) -> None:
    [card] = client.get("/v1/models").json()["data"]
    assert card["id"] == "tiny" and card["dimensions"] == served.encoder.output_dim
    assert (card["heads"], card["head_dimensions"]) == (2, 6)
    assert card["pooling"] == "generalized" and card["max_tokens"] is None
    assert card["classifier"] == "pair" and card["index_rows"] == 3
    assert card["labels"] == ["entailment", "neutral", "contradiction"]
    limits = {"sentences": 8, "characters": 200, "explain_characters": 100, "body_bytes": 4096}
    assert card["limits"] == limits


def test_models_are_loaded_from_folders_or_are_the_embedded_ones(
    sentence_encoder, pair_classifier, text_classifier, tmp_path
) -> None:
    sentence_encoder.save_pretrained(tmp_path / "encoder")
    pair_classifier.save_pretrained(tmp_path / "mine")
    text_classifier.save_pretrained(tmp_path / "labels")
    model = ServedModel.load(tmp_path / "mine")
    assert model.name == "mine" and model.classifier is not None
    assert model.classifier.encoder is model.encoder
    assert ServedModel.load(tmp_path / "encoder").classifier is None
    model = ServedModel.load(tmp_path / "encoder", classifier=tmp_path / "labels")
    assert isinstance(model.classifier, TextClassifier)
    with pytest.raises(FolderError, match="expected a classifier"):
        ServedModel.load(tmp_path / "encoder", classifier=tmp_path / "encoder")
    model = ServedModel.load()
    assert model.name == "genpool-embedded" and isinstance(model.classifier, PairClassifier)


@pytest.mark.parametrize(
    "texts",
    [
        ["a dog runs"],  # one thread
        ["a dog runs .", "", "the red man sleeps , not two dogs ."] * 8,  # several, one tensor
        ["a dog runs", "two dogs sleep ."] * 40,  # several tensors
        ["a dog runs", "a dog runs and " * 50],  # longer than what goes into one tensor
    ],
    ids=["few", "one tensor", "many", "long"],
)
def test_any_number_of_threads_returns_the_same_vectors(
    served: ServedModel, texts: list[str]
) -> None:
    expected = served.encoder.encode(texts)
    for threads in (1, 2):
        with torch_threads(threads):
            vectors, counts = zip(*served.encode(texts), strict=True)
            assert torch.get_num_threads() == threads
        assert np.abs(np.array(vectors) - expected).max() <= 1e-6
        assert list(counts) == [len(text.split()) for text in texts]


def test_impossible_settings_are_reported_together() -> None:
    with pytest.raises(ValueError, match="3 settings are wrong") as raised:
        ServiceSettings(api_key="", max_sentences=0, window_seconds=-1)
    assert "max_sentences is 0; expected 1 or more" in str(raised.value)
    with pytest.raises(ValueError, match="one request must fit"):
        ServiceSettings(max_body_bytes=10, max_buffered_bytes=5)
    assert "secret" not in repr(ServiceSettings(api_key="secret"))
