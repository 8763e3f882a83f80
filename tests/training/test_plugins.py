"""A pooling, an encoder and a reader of a module of one's own, named in a recipe or by a call."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from genpool import TextClassifier
from genpool.data import READERS
from genpool.encoder import ENCODERS
from genpool.errors import ConfigError
from genpool.pooling import POOLINGS
from genpool.training import read_settings, train
from tests.helpers.training_runs import RECIPE, reviews

MODULE = """
import genpool.data, genpool.encoder, genpool.pooling
from torch import nn

@genpool.pooling.register("first")
class FirstPooling(genpool.pooling.Pooling):
    def __init__(self, input_dim: int) -> None:
        super().__init__(input_dim)

    def forward(self, states, mask):
        mask = self.check(states, mask)
        vector = states[:, 0].masked_fill(~mask[:, :1], 0)  # (batch, input_dim)
        return genpool.pooling.Pooled(vector, vector.unsqueeze(1), None)

@genpool.encoder.register("linear")
class LinearEncoder(genpool.encoder.Encoder):
    def __init__(self, input_dim: int, output_dim: int = 5) -> None:
        super().__init__(input_dim, output_dim)
        self.linear = nn.Linear(input_dim, output_dim)

    def encode_rows(self, rows, packing, gates):
        return self.linear(rows), None

@genpool.data.register("bars")
class BarsReader(genpool.data.LinesReader):
    def example(self, values, split):
        return genpool.data.Example(*str(values["line"]).split("|"))
"""
PLUGINS = 'plugins = ["own_parts"]\n'
PARTS = ("reader.name=bars", "encoder.name=linear", "pooling.name=first", "training.epochs=1")
OVERRIDES = (*PARTS, "data.dev_share=0.2")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The folder of the module is the current one; what it registers is forgotten afterwards."""
    (tmp_path / "own_parts.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("own_parts", None)
    for registry, name in ((POOLINGS, "first"), (ENCODERS, "linear"), (READERS, "bars")):
        registry.pop(name, None)
        registry.plugins.pop(name, None)


def test_parts_of_a_plugin_are_trained_saved_and_loaded(module, tmp_path):
    data = tmp_path / "rows.txt"
    data.write_text("".join(f"{label}|{text}\n" for label, text in reviews(30, 0)))
    settings = read_settings(PLUGINS + RECIPE, OVERRIDES)
    assert settings.plugins == ("own_parts",)
    train(settings, data, tmp_path / "run", show_progress=False)
    config = (tmp_path / "run" / "config.toml").read_text()
    assert tomllib.loads(config)["plugins"] == ["own_parts"]
    assert read_settings(config) == settings  # a run is resumed with them
    model = TextClassifier.from_pretrained(tmp_path / "run" / "best")
    assert type(model.encoder.pooling).__name__ == "FirstPooling"
    same = model.encoder.encode(["joy", "joy waste"])
    np.testing.assert_allclose(same[0], same[1], atol=1e-6)


def test_plugins_of_the_command_are_added_to_those_of_the_recipe(module):
    with pytest.raises(ConfigError, match="unknown pooling 'first'"):
        read_settings(RECIPE, OVERRIDES)
    named = read_settings(PLUGINS + RECIPE, OVERRIDES)
    assert read_settings(RECIPE, OVERRIDES, plugins=["own_parts"]) == named
    assert read_settings(PLUGINS, plugins=["own_parts", "json"]).plugins == ("own_parts", "json")


def test_a_plugin_that_cannot_be_used_is_an_error_before_any_work(module):
    with pytest.raises(ConfigError, match="the plugin 'missing' cannot be imported"):
        read_settings(RECIPE, plugins=["missing"])
    with pytest.raises(ConfigError, match=r"unknown encoder 'lineal'.*own_parts is imported and"):
        read_settings(PLUGINS, ["encoder.name=lineal"])
    with pytest.raises(ConfigError, match="plugins is 3; expected a list"):
        read_settings("plugins = 3")
