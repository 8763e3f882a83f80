"""A service as its own process: starting, stopping, and clients that hang up."""

import json
import os
import signal
import socket
from pathlib import Path

import httpx2
import pytest

from genpool.errors import InputError
from genpool.service import ServedModel, ServiceSettings, create_app, serve
from tests.helpers.commands import Command
from tests.helpers.services import listening, post_together
from tests.service.conftest import running_service

BODY = {"input": ["a dog runs"] * 4}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM")
def test_the_command_serves_and_answers_before_it_stops(pair_classifier, tmp_path: Path) -> None:
    pair_classifier.save_pretrained(tmp_path / "model")
    with running_service(str(tmp_path / "model"), "--api-key", "key") as (process, address):
        assert httpx2.get(f"{address}/v1/models").status_code == 401
        headers = {"Authorization": "Bearer key"}
        [card] = httpx2.get(f"{address}/v1/models", headers=headers).json()["data"]
        assert card["id"] == "model" and card["classifier"] == "pair"
        # Half of a request arrives before the signal, the other half after it.
        content = json.dumps(BODY).encode()
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            head = f"POST /v1/embeddings HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer key\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
            connection.sendall(head.encode() + content[:10])
            assert httpx2.get(f"{address}/healthz").is_success  # the first half was read too
            process.send_signal(signal.SIGTERM)
            while True:  # until it accepts nothing new
                try:
                    socket.create_connection((host, int(port))).close()
                except OSError:
                    break
            connection.sendall(content[10:])
            answer = b""
            while part := connection.recv(65536):
                answer += part
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert len(json.loads(answer.split(b"\r\n\r\n", 1)[1])["data"]) == 4
        _, errors = process.communicate()
        assert process.returncode in (0, -signal.SIGTERM) and "Traceback" not in errors


def test_a_client_that_hangs_up_costs_nothing(served: ServedModel) -> None:
    app = create_app(served, ServiceSettings(window_seconds=0.3))
    content = json.dumps(BODY).encode()
    head = "POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(content)}\r\n\r\n"
    with listening(app) as address:
        host, port = address.removeprefix("http://").split(":")
        for sent in (content, content[:5], b""):  # after the request, inside it, before its body
            with socket.create_connection((host, int(port))) as connection:
                connection.sendall(head.encode() + sent)
        answer = httpx2.post(f"{address}/v1/embeddings", json={"input": "the man"}, timeout=None)
        assert answer.is_success
        metrics = httpx2.get(f"{address}/metrics").text
    # Only the sentence of the client that stayed was encoded.
    assert 'genpool_batch_items_sum{work="encode"} 1.0' in metrics
    assert 'status="500"' not in metrics


def test_many_clients_at_once_get_right_answers(served: ServedModel) -> None:
    texts = [
        f"{first} {second}" for first in ("a", "the", "two") for second in ("dog", "man", "red")
    ]
    bodies = [{"input": text} for text in texts]
    for text, answer in zip(
        texts, post_together(create_app(served), "/v1/embeddings", bodies), strict=True
    ):
        expected = served.encoder.encode(text, normalize_embeddings=True)
        assert answer.json()["data"][0]["embedding"] == pytest.approx(expected, abs=1e-6)


def test_what_cannot_be_served_is_refused_and_a_service_for_everybody_without_a_key_warns(
    served: ServedModel, genpool: Command, tmp_path: Path
) -> None:
    app = create_app(served)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=rf"cannot listen at 127.0.0.1:{port}.*--port"):
            serve(app, port=port)
    for host in ("192.0.2.1", "no such host"):
        with pytest.raises(InputError, match=r"cannot listen at .* expected an address of this"):
            serve(app, host=host)
    nothing = tmp_path / "nothing"
    genpool("serve", "--index", nothing).refused("error: ", "nothing")
    genpool("serve", nothing, "--host", "0.0.0.0").refused("everybody who can reach 0.0.0.0")
    said = genpool("serve", nothing, "--host", "0.0.0.0", "--api-key", "k").refused("nothing")
    assert said.err.startswith("error: ") and "who can reach" not in said.err
