"""A small genpool encoder, a tiny BERT, and texts whose label depends on one word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from genpool import SentenceEncoder
from tests.helpers.small_models import MakeEncoder

from .texts import make_texts


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


@pytest.fixture(scope="session")
def rows() -> tuple[list[str], list[str]]:
    """Sixty texts; the label says whether the man or the dog does something."""
    return make_texts(60, np.random.default_rng(0))
