"""--plugin: a class from a module of the user, in the commands that take a recipe or a model."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from genpool import SentenceEncoder
from genpool.pooling import POOLINGS
from tests.helpers.training_runs import SMALL_RULES, sets

PLUGIN = '''
from genpool.pooling import MeanPooling, register

@register("doubled")
class DoubledPooling(MeanPooling):
    """Twice the mean; the other arguments are those that the recipe has."""
    def __init__(self, input_dim: int, heads: int = 1, hidden_dim: int = 1) -> None:
        super().__init__(input_dim)

    def reduce(self, states, mask):
        return 2 * super().reduce(states, mask)
'''


@pytest.mark.slow
def test_a_pooling_of_the_user_is_trained_saved_and_encodes(genpool, place, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])  # which the plugin's folder is added to
    (place / "doubled_pooling.py").write_text(PLUGIN)
    try:
        settings = [*SMALL_RULES, "training.epochs=1", "pooling.name=doubled"]
        plugin = ("--plugin", "doubled_pooling")
        genpool("train", "rules", "--out", "run", *plugin, *sets(settings)).ok()
        genpool("encode", "run/best", "sentences.txt", "-o", "v.npy", *plugin).ok()
        words = "encode run/best sentences.txt -o shards --engine local --workers 2 --shard-rows 1"
        said = genpool(*words.split(), *plugin).ok()
        assert said.out.startswith("shards: vectors of ")
        encoder = SentenceEncoder.from_pretrained(place / "run" / "best")
        assert encoder.settings.pooling.name == "doubled"
        expected = encoder.encode(["A dog runs.", "", "An animal sleeps."])
        assert np.abs(np.load("v.npy") - expected).max() < 1e-6
    finally:
        POOLINGS.pop("doubled", None)
        sys.modules.pop("doubled_pooling", None)
