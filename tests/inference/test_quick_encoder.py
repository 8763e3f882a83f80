"""The inference form gives the vectors of the model it was made from."""

from __future__ import annotations

import numpy as np
import pytest

from genpool import SentenceEncoder
from genpool.config import ModelSettings, Part
from genpool.encoder import ENCODERS
from genpool.errors import InputError
from genpool.inference.quick import QuickEncoder
from genpool.pooling import POOLINGS
from tests.helpers.random_encoders import SENTENCES, largest_difference, model

PAIRS = [
    (encoder, pooling)
    for encoder in ENCODERS
    for pooling in POOLINGS
    if ENCODERS[encoder].has_gates or not POOLINGS[pooling].needs_gates
]


@pytest.mark.parametrize(("encoder", "pooling"), PAIRS)
def test_same_vectors_as_the_model(encoder, pooling):
    plain = model(encoder, pooling)
    quick = QuickEncoder(plain)
    expected = plain.encode(SENTENCES)
    assert largest_difference(quick.encode(SENTENCES), expected) < 1e-6
    assert largest_difference(quick.encode(SENTENCES, batch_size=2), expected) < 1e-6


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("shortcut", ["direction", "both"])
def test_every_depth_and_form_of_the_papers_encoder(layers, shortcut):
    plain = model("stacked-bilstm", layers=layers)
    plain = SentenceEncoder.from_settings(
        plain.text,
        ModelSettings(
            embedding=plain.settings.embedding,
            encoder=Part(
                "stacked-bilstm", {"hidden_dim": 4, "layers": layers, "shortcut": shortcut}
            ),
        ),
    )
    difference = largest_difference(QuickEncoder(plain).encode(SENTENCES), plain.encode(SENTENCES))
    assert difference < 1e-6


def test_begin_and_end_tokens_are_there_too():
    plain = model("bilstm", ends=True)
    assert np.abs(plain.encode("")).max() > 0
    assert largest_difference(QuickEncoder(plain).encode(SENTENCES), plain.encode(SENTENCES)) < 1e-6


def test_a_full_table_is_emptied_and_gives_the_same_vectors():
    plain = model("stacked-bilstm")
    quick = QuickEncoder(plain, capacity=3)
    many = [f"word{number} dog" for number in range(40)]
    assert largest_difference(quick.encode(many, batch_size=4), plain.encode(many)) < 1e-6
    assert len(quick._words) <= 3 + 2 + 4 * 2  # the ends, and one batch more than the capacity


def test_every_word_is_computed_once(monkeypatch):
    plain = model("stacked-bilstm")
    quick = QuickEncoder(plain)
    computed = []
    distinct = plain.embedding.distinct

    def counted(batch):
        computed.append(len(batch.word_ids))
        return distinct(batch)

    monkeypatch.setattr(plain.embedding, "distinct", counted)
    for _ in range(3):
        quick.encode(["a dog runs", "the dog sleeps"])
    assert sum(computed) == 5 + 2  # five words and the two sentence ends


def test_capacity_below_one_is_refused():
    with pytest.raises(InputError, match="capacity is 0"):
        QuickEncoder(model("bilstm"), capacity=0)
