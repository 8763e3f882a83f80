"""A service of tiny models: an encoder with a pair classifier on top, and an index."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from genpool import PairClassifier
from genpool.search import ModelReference, SearchIndex
from genpool.service import ServedModel, ServiceSettings, create_app
from tests.helpers.small_indexes import write_index

POSTS = ["/v1/embeddings", "/similarity", "/classify", "/search", "/explain"]
INDEXED = ["a dog runs .", "the man sleeps", "two red dogs"]
#: small enough to be reached by a test
LIMITS = ServiceSettings(
    max_sentences=8,
    max_characters=200,
    max_explain_characters=100,
    max_cosines=12,
    max_body_bytes=4096,
    max_buffered_bytes=8192,
    max_queued_sentences=16,
    batch_sentences=8,
    window_seconds=0.01,
)


@contextmanager
def running_service(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Runs `genpool serve`; yields the process and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "genpool", "serve", "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        matched = re.fullmatch(r"serving at (http://127\.0\.0\.1:\d+) \(Ctrl-C stops\)\n", line)
        assert matched, line
        yield process, matched[1]
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def served(pair_classifier: PairClassifier, tmp_path: Path) -> ServedModel:
    encoder = pair_classifier.encoder
    vectors = encoder.encode(INDEXED)
    write_index(tmp_path / "index", vectors, INDEXED, model=ModelReference.of(encoder))
    return ServedModel(encoder, pair_classifier, SearchIndex.open(tmp_path / "index"), "tiny")


@pytest.fixture
def app(served: ServedModel) -> FastAPI:
    return create_app(served, LIMITS)


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client
