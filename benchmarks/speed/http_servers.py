"""Servers of one model, to compare: genpool's service, and what people write first.

python -m benchmarks.speed.http_servers NAME     serves at a free port, which it prints
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from genpool import SentenceEncoder
from genpool.integrations.sentence_transformers import load
from genpool.service import ServedModel, ServiceSettings, create_app, serve


class TextRequest(BaseModel):
    """One sentence."""

    input: str


def batching() -> FastAPI:
    """Returns genpool's service."""
    return create_app(ServedModel.load())


def one_at_a_time() -> FastAPI:
    """Returns genpool's service, with batches of one sentence."""
    return create_app(ServedModel.load(), ServiceSettings(batch_sentences=1, window_seconds=0.0))


def plain_handler() -> FastAPI:
    """Returns an application of one function that encodes what it gets."""
    return _application(SentenceEncoder.from_pretrained().encode)


def sentence_transformers_handler() -> FastAPI:
    """Returns the same with the model as a SentenceTransformer."""
    model: Any = load()
    return _application(lambda text: model.encode(text, show_progress_bar=False))


def _application(encode: Callable[[str], Any]) -> FastAPI:
    app = FastAPI()

    # A plain function: FastAPI calls it on one of its threads, as its documentation shows.
    @app.post("/v1/embeddings")
    def embeddings(body: TextRequest) -> dict[str, Any]:
        return {"data": [{"embedding": encode(body.input).tolist()}]}

    return app


SERVERS: dict[str, Callable[[], FastAPI]] = {
    "genpool serve": batching,
    "genpool serve, one request at a time": one_at_a_time,
    "FastAPI handler, model.encode": plain_handler,
    "FastAPI handler, sentence-transformers": sentence_transformers_handler,
}


def main() -> None:
    """Serves until the process is ended."""
    app = SERVERS[sys.argv[1]]()
    serve(app, port=0, ready=lambda address: print(address.rpartition(":")[2], flush=True))


if __name__ == "__main__":
    main()
