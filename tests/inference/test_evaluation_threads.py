"""A model in training mode is evaluated without dropout, by any number of threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from genpool.encoder import ENCODERS
from genpool.pooling import POOLINGS
from genpool.tensors.modules import fast_paths
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
        if threading.current_thread().name.startswith("first"):
            first_inside.set()
            second_inside.wait(60)
        else:
            second_inside.set()
            first_done.wait(60)
        return distinct(batch)

    monkeypatch.setattr(model.embedding, "distinct", waiting)
    with ThreadPoolExecutor(1, "first") as one, ThreadPoolExecutor(1, "second") as other:
        first = one.submit(model.encode, SENTENCES)
        first_inside.wait(60)
        second = other.submit(model.encode, SENTENCES)
        assert np.array_equal(first.result(60), expected)
        first_done.set()
        assert np.array_equal(second.result(60), expected)
