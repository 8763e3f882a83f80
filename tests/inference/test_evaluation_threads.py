"""A model in training mode is evaluated without dropout, by any number of threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from genpool import PairClassifier
from genpool.encoder import ENCODERS
from genpool.pooling import POOLINGS
from genpool.tensors.fast import fast_paths
from tests.helpers.small_models import MakeEncoder

SENTENCES = ["the man sleeps.", "", "a red dog runs, not two.", "unheard"]


@pytest.mark.parametrize(
    ("encoder", "pooling", "fast"),
    [
        *((name, "generalized", True) for name in ENCODERS),
        *(("bilstm", name, True) for name in POOLINGS),
        ("stacked-bilstm", "generalized", False),
        ("bilstm", "gated", False),
    ],
)
def test_a_model_in_training_mode_encodes_as_in_eval_mode(
    make_encoder: MakeEncoder, encoder: str, pooling: str, fast: bool
) -> None:
    model = make_encoder(pooling, encoder)
    with fast_paths(fast):
        expected = model.eval().encode(SENTENCES)
        vectors = model.train().encode(SENTENCES)
    assert np.array_equal(vectors, expected)
    assert all(part.training for part in model.modules())


def test_a_call_that_ends_gives_no_dropout_to_one_that_has_begun(
    make_encoder: MakeEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_encoder()
    expected = model.encode(SENTENCES)
    model.train()
    first_inside, second_inside, first_done = (threading.Event() for _ in range(3))
    distinct = model.embedding.distinct

    def waiting(batch):
        if threading.current_thread().name == "first":
            first_inside.set()
            second_inside.wait(60)
        else:
            second_inside.set()
            first_done.wait(60)
        return distinct(batch)

    monkeypatch.setattr(model.embedding, "distinct", waiting)
    vectors = {}

    def encode(name: str) -> None:
        vectors[name] = model.encode(SENTENCES)

    first = threading.Thread(target=encode, args=("first",), name="first")
    second = threading.Thread(target=encode, args=("second",), name="second")
    first.start()
    first_inside.wait(60)
    second.start()
    first.join(60)
    first_done.set()
    second.join(60)
    assert np.array_equal(vectors["first"], expected)
    assert np.array_equal(vectors["second"], expected)


def test_many_threads_share_a_model_in_training_mode(pair_classifier: PairClassifier) -> None:
    model = pair_classifier
    pairs = [(first, second) for first in SENTENCES for second in SENTENCES]
    vectors, probabilities = model.encoder.encode(SENTENCES), model.predict_proba(pairs)
    model.train()

    def evaluate(number: int) -> bool:
        if number % 2:
            return np.array_equal(model.encoder.encode(SENTENCES), vectors)
        return np.array_equal(model.predict_proba(pairs), probabilities)

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(evaluate, range(60)))
