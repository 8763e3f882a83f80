"""What bad input gets: an answer that says how to fix it, never a 5xx and never a stack trace."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient

from genpool.service import ServedModel, ServiceSettings, create_app
from tests.helpers.services import post_together, with_clients
from tests.service.conftest import LIMITS, POSTS

JSON = {"Content-Type": "application/json"}


def error_of(answer: httpx2.Response, status: int, code: str) -> str:
    """Checks the shape of an error; returns its message."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == code
    message: str = error["message"]
    assert "Traceback" not in answer.text and message.endswith(".")
    return message


OTHER_SHAPES: list[Any] = [[], "a", 1, None, {}, {"inputs": "a"}, {"input": {"a": 1}}]
NO_JSON = [b"{", b"nothing", b'{"input": "a"', b"\xff\xfe", b'{"input": "\xff"}', b"[" * 3000]


def test_what_is_not_json_or_of_another_shape_is_refused(client: TestClient) -> None:
    for path in POSTS:
        for content in NO_JSON:
            answer = client.post(path, content=content, headers=JSON)
            assert "not JSON" in error_of(answer, 400, "invalid_json")
        error_of(client.post(path, content=b"", headers=JSON), 422, "invalid_request")
        for body in OTHER_SHAPES:
            error_of(client.post(path, json=body), 422, "invalid_request")
    content = json.dumps({"input": "a dog"}).encode()
    answer = client.post("/v1/embeddings", content=content, headers={"Content-Type": "text/plain"})
    assert "application/json" in error_of(answer, 422, "invalid_request")


def test_inputs_that_are_no_texts_are_refused(client: TestClient) -> None:
    wrong: list[Any] = [1, 2.5, True, None, [1, 2], [[1, 2]], ["a", 1], ["a", None]]
    for given in wrong:
        answer = client.post("/v1/embeddings", json={"input": given})
        message = error_of(answer, 422, "invalid_request")
        assert message.startswith("input: ") and "string" in message
    fields = ("input", "first", "input", "query")
    for path, field in zip(POSTS, fields, strict=False):
        answer = client.post(path, json={"second": "a", field: []})
        assert error_of(answer, 422, "empty_input").startswith(f"{field} is an empty list")


def test_too_many_texts_and_characters_have_their_own_errors(client: TestClient) -> None:
    answer = client.post("/v1/embeddings", json={"input": ["a"] * 9})
    message = error_of(answer, 422, "too_many_sentences")
    assert "9 texts; expected at most 8" in message and "several requests" in message
    assert client.post("/v1/embeddings", json={"input": ["a"] * 8}).is_success
    answer = client.post("/classify", json={"input": [["a", "b"]] * 5})
    error_of(answer, 422, "too_many_sentences")
    answer = client.post("/v1/embeddings", json={"input": ["a", "b" * 201]})
    message = error_of(answer, 422, "too_many_characters")
    assert "text 1 has 201 characters; expected at most 200" in message
    assert client.post("/v1/embeddings", json={"input": "b" * 200}).is_success
    answer = client.post("/explain", json={"input": "b" * 101})
    assert "expected at most 100" in error_of(answer, 422, "too_many_characters")


def test_a_body_is_refused_by_what_arrives(served: ServedModel) -> None:
    def answer(settings: ServiceSettings, parts: list[bytes], pause: float) -> httpx2.Response:
        async def content() -> AsyncIterator[bytes]:  # of no declared size
            for part in parts:
                yield part
            await asyncio.sleep(pause)

        async def use(client: httpx2.AsyncClient) -> httpx2.Response:
            return await client.post("/v1/embeddings", content=content(), headers=JSON)

        return with_clients(create_app(served, settings), use)

    large = answer(LIMITS, [b" " * 1000] * 5, 0)
    assert "expected at most 4,096" in error_of(large, 413, "body_too_large")
    endless = answer(ServiceSettings(body_timeout_seconds=0.05), [b'{"input": '], 3600)
    assert "within 0.05 sec" in error_of(endless, 408, "request_timeout")


UNUSUAL = ["\x00", "\x07\x1b[31m", "\u202e abc", "\ufeff", "a\r\nb", "\U0001f600", "e\u0301" * 9]
UNUSUAL += ["<script>alert('x')</script>"]


def test_only_halves_of_characters_are_refused(client: TestClient) -> None:
    for path, body in [
        ("/v1/embeddings", '{"input": "a \\ud800"}'),
        ("/explain", '{"input": "a \\udc00"}'),
        ("/classify", '{"input": [["a", "\\ud800"]]}'),
        ("/search", '{"query": "\\ud800"}'),
    ]:
        answer = client.post(path, content=body.encode(), headers=JSON)
        assert "valid Unicode" in error_of(answer, 422, "invalid_text")
    for text in UNUSUAL:
        assert client.post("/v1/embeddings", json={"input": text}).is_success
        explained = client.post("/explain", json={"input": [text, text]})
        assert explained.is_success and explained.json()["sentences"][0]["sentence"] == text
        assert explained.headers["content-type"] == "application/json"


def test_a_full_queue_or_memory_is_answered_with_when_to_come_again(served: ServedModel) -> None:
    app = create_app(served, ServiceSettings(max_queued_sentences=4, window_seconds=0.2))
    answers = post_together(app, "/v1/embeddings", [{"input": ["a dog", "a man"]}] * 6)
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [200, 200, 503, 503, 503, 503]
    for answer in answers:
        if answer.status_code == 503:
            assert "Try again" in error_of(answer, 503, "overloaded")
            assert answer.headers["retry-after"] == "1"
    # All requests together are bounded in memory.
    settings = ServiceSettings(
        max_body_bytes=3000, max_buffered_bytes=5000, window_seconds=0.2, max_characters=3000
    )
    answers = post_together(
        create_app(served, settings), "/v1/embeddings", [{"input": "a" * 2000}] * 4
    )
    assert sorted(answer.status_code for answer in answers) == [200, 200, 503, 503]
    app = create_app(served, settings)
    for _ in range(4):  # one after the other, nothing is left of those before
        [answer] = post_together(app, "/v1/embeddings", [{"input": "a" * 2000}])
        assert answer.is_success


def test_unknown_paths_and_methods_have_the_same_shape(client: TestClient) -> None:
    for path in ("/nothing", "/static/../app.py", "/static/nothing.js"):
        error_of(client.get(path), 404, "not_found")
    error_of(client.get("/v1/embeddings"), 405, "method_not_allowed")
    error_of(client.delete("/healthz"), 405, "method_not_allowed")


def test_an_error_of_the_service_shows_nothing_of_its_inside(
    served: ServedModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(sentences: object) -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr(served, "encode", fail)
    app = create_app(served, LIMITS)
    with TestClient(app, raise_server_exceptions=False) as client:
        answer = client.post("/v1/embeddings", json={"input": "a dog"})
        message = error_of(answer, 500, "internal_error")
        assert "secret" not in answer.text and "log" in message
        assert "a secret of the inside" in caplog.text  # for those who run the service
        assert client.get("/healthz").is_success
