"""The key, the headers, the metrics, and the description of the service."""

import hmac
import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from genpool.service import ServedModel, ServiceSettings, create_app, http
from tests.helpers.services import post_together
from tests.service.conftest import POSTS

PROTECTED = [*(("POST", path) for path in POSTS), ("GET", "/v1/models"), ("GET", "/metrics")]


@pytest.fixture
def locked(served: ServedModel) -> Iterator[TestClient]:
    with TestClient(create_app(served, ServiceSettings(api_key="right-key"))) as client:
        yield client


WRONG_KEYS = ["Bearer wrong", "Bearer right-key2", "right-key", "Basic right-key", "Bearer é"]


def test_the_key_is_required(locked: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[Any] = [(*endpoint, {}) for endpoint in PROTECTED]
    attempts += [(*PROTECTED[0], {b"Authorization": key.encode("latin-1")}) for key in WRONG_KEYS]
    for method, path, headers in attempts:
        answer = locked.request(method, path, headers=headers)
        assert answer.status_code == 401, (path, headers)
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["error"]["code"] == "unauthorized"
        assert "right-key" not in answer.text
    right = {"Authorization": "Bearer right-key"}
    assert locked.get("/v1/models", headers=right).is_success
    assert locked.post("/explain", json={"input": "a dog"}, headers=right).is_success
    assert locked.get("/healthz").json() == {"status": "ok"}
    assert locked.get("/").is_success and locked.get("/static/main.js").is_success
    # Keys are compared in constant time.
    compared: list[tuple[bytes, bytes]] = []

    def recorded(sent: bytes, expected: bytes) -> bool:
        compared.append((sent, expected))
        return False

    assert vars(http)["compare_digest"] is hmac.compare_digest
    monkeypatch.setattr(http, "compare_digest", recorded)
    assert locked.get("/v1/models", headers=right).status_code == 401  # nothing else decides
    assert compared == [(b"Bearer right-key", b"Bearer right-key")]


def test_every_answer_forbids_what_is_not_from_here(client: TestClient) -> None:
    for path in ("/", "/static/main.js", "/healthz", "/nothing"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and "http" not in policy and "*" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers
    page = client.get("/").text
    references = re.findall(r'(?:src|href)="([^"#]+)"', page)
    # Swagger and ReDoc would load scripts from other hosts.
    assert client.get("/docs").status_code == client.get("/redoc").status_code == 404
    assert references and not [name for name in references if "//" in name]
    for name in references:
        assert client.get(f"/{name}").is_success, name


def test_metrics_count_requests_batches_and_queues(app: FastAPI, served: ServedModel) -> None:
    post_together(app, "/v1/embeddings", [{"input": "a dog"}] * 3 + [{"input": []}])
    with TestClient(app) as client:
        client.get("/any/name/that/is/invented")
        answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    path = ("path", "/v1/embeddings")
    assert samples["genpool_requests_total", path, ("status", "200")] == 3
    assert samples["genpool_requests_total", path, ("status", "422")] == 1
    assert samples["genpool_requests_total", ("path", "other"), ("status", "404")] == 1
    assert samples["genpool_request_seconds_count", path] == 4
    assert samples["genpool_batch_items_sum", ("work", "encode")] == 3
    assert samples["genpool_batch_items_count", ("work", "encode")] == 1  # one batch of three
    assert samples["genpool_queued_items", ("work", "encode")] == 0
    assert "invented" not in answer.text


def test_openapi_describes_every_endpoint_with_an_example(client: TestClient) -> None:
    description = client.get("/openapi.json").json()
    paths = description["paths"]
    described = {(method.upper(), path) for path in paths for method in paths[path]}
    assert described == {*PROTECTED, ("GET", "/healthz")}
    schemas = description["components"]["schemas"]
    for method, path in PROTECTED:
        endpoint = paths[path][method.lower()]
        assert endpoint["summary"] and endpoint["description"]
        if method == "POST":
            body = endpoint["requestBody"]["content"]["application/json"]["schema"]
            [example] = schemas[body["$ref"].split("/")[-1]]["examples"]
            assert client.post(path, json=example).is_success, path
            assert {"400", "401", "413", "422", "503"} <= set(endpoint["responses"])
