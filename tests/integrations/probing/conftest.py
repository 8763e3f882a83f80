"""A small genpool encoder, a tiny BERT, and texts whose label depends on one word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from genpool import SentenceEncoder
from tests.helpers.small_models import MakeEncoder

Rows = tuple[list[str], list[str]]


@pytest.fixture(scope="session")
def encoder(make_encoder: MakeEncoder) -> SentenceEncoder:
    return make_encoder(seed=3)


@pytest.fixture(scope="session")
def encoder_folder(encoder: SentenceEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("probing") / "encoder"
    encoder.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain folder of transformers."""
    pytest.importorskip("sentence_transformers")
    from tests.integrations.tiny_bert import tiny_transformer

    folder = tmp_path_factory.mktemp("probing") / "bert"
    tiny_transformer(folder)
    return folder


def make_texts(count: int, random: np.random.Generator) -> Rows:
    """Different texts; the label says whether the man or the dog does something."""
    others = ["the", "a", "sleeps", "rests", "runs", "red", "not", "two", ".", ","]
    rows: dict[str, str] = {}
    while len(rows) < count:
        who = ("man", "dog")[len(rows) % 2]
        words = [str(word) for word in random.choice(others, size=random.integers(3, 8))]
        words.insert(int(random.integers(len(words) + 1)), who)
        rows.setdefault(" ".join(words), f"the {who}")
    return list(rows), list(rows.values())


@pytest.fixture(scope="session")
def rows() -> Rows:
    return make_texts(60, np.random.default_rng(0))


@pytest.fixture(scope="session")
def test_rows() -> Rows:
    return make_texts(40, np.random.default_rng(7))
