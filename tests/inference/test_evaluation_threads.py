"""A model in training mode is evaluated without dropout, by any number of threads."""

from __future__ import annotations

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
