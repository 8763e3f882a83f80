"""All forms of a model with the released program's layers return the same vectors at inference."""

from __future__ import annotations

import numpy as np
import pytest

from genpool import PairClassifier
from genpool.config import ClassifierSettings
from genpool.inference.quick import QuickEncoder
from genpool.tensors.modules import fast_paths
from tests.helpers.released_layers import (
    SENTENCES,
    released_encoder,
    with_halved_embedding,
    with_halved_hidden_layers,
)
from tests.helpers.small_models import LABELS, MakeEncoder, lively


@pytest.mark.parametrize(
    ("pooling", "fast", "training"),
    [
        ("generalized", True, True),
        ("generalized", False, False),
        ("gated", True, False),
        ("max", True, True),
    ],
)
def test_vectors_and_explanations_are_those_of_halved_weights_without_scaling(
    make_encoder: MakeEncoder, pooling: str, fast: bool, training: bool
) -> None:
    model = released_encoder(make_encoder, pooling)
    halved = with_halved_embedding(model)
    expected = halved.encode(SENTENCES)
    with fast_paths(fast):
        vectors = model.train(training).encode(SENTENCES)
    for found in (vectors, QuickEncoder(model).encode(SENTENCES)):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    weights, halved_weights = (form.explain("the man runs").weights for form in (model, halved))
    np.testing.assert_allclose(weights, halved_weights, rtol=0, atol=1e-6)
    assert np.abs(expected).max() > 0.1


def test_eight_bits_round_only_what_is_behind_the_embedding(make_encoder: MakeEncoder) -> None:
    model = released_encoder(make_encoder)
    expected = QuickEncoder(with_halved_embedding(model), int8=True).encode(SENTENCES)
    vectors = QuickEncoder(model.train(), int8=True).encode(SENTENCES)
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-6)


def test_scaling_changes_the_vectors(make_encoder: MakeEncoder) -> None:
    model = released_encoder(make_encoder)
    scaled = model.encode(SENTENCES)
    model.embedding.dropout.scaling = "inverted"
    assert np.abs(scaled - model.encode(SENTENCES)).max() > 1e-2


def test_probabilities_are_those_of_halved_hidden_layers(make_encoder: MakeEncoder) -> None:
    encoder = released_encoder(make_encoder)
    settings = ClassifierSettings(5, 0.5, "gaussian", "test")
    model = PairClassifier(encoder, LABELS, settings)
    assert model.mlp.options["initialization"] == "gaussian" and not model.mlp.first.bias.any()
    lively(model)
    pairs = [("the man sleeps.", "a man rests"), ("two dogs", ""), ("red", "not red")]
    probabilities = model.train().predict_proba(pairs)
    expected = with_halved_hidden_layers(model).predict_proba(pairs)
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=1e-6)
    model.mlp.dropout.scaling = "inverted"
    assert np.abs(model.predict_proba(pairs) - expected).max() > 1e-3
