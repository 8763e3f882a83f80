"""Models of ready modules, with a pooling and an encoder of the user's own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import genpool.encoder
import genpool.pooling
from genpool import SentenceEncoder, TextClassifier
from genpool.classifier import MLP
from genpool.embedding import TokenEmbedding
from genpool.encoder import ENCODERS, BagOfWordsEncoder, BiLSTMEncoder, Encoder
from genpool.errors import ConfigError, FolderError, InputError
from genpool.pooling import POOLINGS, GatedPooling, MaxPooling, Pooled, Pooling
from genpool.registry import Registry
from genpool.tensors.packing import Packing
from genpool.text import TextPipeline
from tests.helpers.small_models import lively

SENTENCES = ["a dog runs .", "", "the red man", "two men rest , a dog runs"]
PLUGIN = """
import torch
import genpool.pooling
from genpool.pooling import Pooled, Pooling

@genpool.pooling.register("{name}")
class FirstPooling(Pooling):
    def __init__(self, input_dim, scale=1.0):
        super().__init__(input_dim)
        self.weight = torch.nn.Parameter(torch.full((input_dim,), float(scale)))

    def forward(self, states, mask):
        mask = self.check(states, mask)
        first = (mask.cumsum(1) == 1) & mask
        vector = (states * first.unsqueeze(2)).sum(1) * self.weight
        return Pooled(vector, vector.unsqueeze(1), None)
"""


class ScaledEncoder(Encoder):
    """A linear map of each token."""

    def __init__(self, input_dim: int, output_dim: int = 3) -> None:
        super().__init__(input_dim, output_dim)
        self.linear = nn.Linear(input_dim, output_dim)

    def encode_rows(
        self, rows: Tensor, packing: Packing, gates: bool
    ) -> tuple[Tensor, Tensor | None]:
        return self.linear(rows), None


class SumPooling(Pooling):
    def __init__(self, input_dim: int, scales: Any = (1.0,)) -> None:
        super().__init__(input_dim)
        self.scale = float(scales[0])

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        mask = self.check(states, mask)
        vector = self.scale * (states * mask.unsqueeze(2)).nan_to_num().sum(1)
        return Pooled(vector, vector.unsqueeze(1), None)


@pytest.fixture
def registered() -> Iterator[None]:
    """Undoes what a test registers."""
    registries: tuple[Registry[Any], ...] = (POOLINGS, ENCODERS)
    before = [(dict(classes), dict(classes.plugins)) for classes in registries]
    yield
    for classes, (names, plugins) in zip(registries, before, strict=True):
        for name in set(classes) - set(names):
            del classes[name]
        classes.plugins = plugins


def parts(text: TextPipeline, pooling: Callable[[int], Pooling]) -> SentenceEncoder:
    embedding = TokenEmbedding(len(text.vocabulary), 4, characters=len(text.characters))
    encoder = ScaledEncoder(embedding.output_dim)
    return lively(SentenceEncoder(text, embedding, encoder, pooling(3))).eval()


def test_a_model_of_modules_is_the_model_of_its_settings(text: TextPipeline) -> None:
    embedding = TokenEmbedding(len(text.vocabulary), 4, frozen=False)
    encoder = BiLSTMEncoder(4, hidden_dim=3)
    pooling = MaxPooling(6)
    projection = nn.Linear(6, 2, bias=False)
    model = lively(SentenceEncoder(text, embedding, encoder, pooling, projection)).eval()
    again = SentenceEncoder.from_settings(text, model.settings).eval()
    again.load_state_dict(model.state_dict())
    assert again.settings == model.settings
    assert model.settings.projection.dim == model.output_dim == 2
    assert np.array_equal(again.encode(SENTENCES), model.encode(SENTENCES))
    classifier = TextClassifier(model, ["a", "b"], MLP(2, hidden_dim=3, classes=2))
    assert classifier.settings.classifier.hidden_dim == 3
    assert TextClassifier(model, ["a", "b"]).settings.classifier.hidden_dim == 300


def test_parts_that_do_not_fit_are_refused_with_both_sizes(text: TextPipeline) -> None:
    words = len(text.vocabulary)
    embedding, encoder = TokenEmbedding(words, 4), BiLSTMEncoder(4, hidden_dim=3)
    wrong: list[tuple[Any, str]] = [
        ((TokenEmbedding(3, 4), encoder, MaxPooling(6)), f"words=3; expected {words}"),
        ((TokenEmbedding(words, 4, characters=2), encoder, MaxPooling(6)), "input_dim=4; expected"),
        ((embedding, BiLSTMEncoder(5), MaxPooling(6)), "encoder has input_dim=5; expected 4"),
        ((embedding, encoder, MaxPooling(5)), "pooling has input_dim=5; expected 6"),
        ((embedding, encoder, MaxPooling(6), nn.Linear(5, 2)), "in_features=5; expected 6"),
        ((embedding, encoder, MaxPooling(6), nn.Linear(6, 2)), "has a bias"),
        ((embedding, BagOfWordsEncoder(4), GatedPooling(4)), "BagOfWordsEncoder does not have"),
    ]
    for modules, problem in wrong:
        with pytest.raises(InputError, match=problem):
            SentenceEncoder(text, *modules)
    model = SentenceEncoder(text, embedding, encoder, MaxPooling(6))
    with pytest.raises(InputError, match=r"maps 5 features to 2 classes; expected 6 features"):
        TextClassifier(model, ["a", "b"], MLP(5, classes=2))


def test_a_class_without_a_name_works_but_is_saved_only_with_one(
    text: TextPipeline, tmp_path: Path, registered: None
) -> None:
    model = parts(text, SumPooling)
    assert np.abs(model.encode(SENTENCES)[0]).max() > 0
    assert model.explain("a dog").weights.shape == (1, 2, 3)
    with pytest.raises(ConfigError, match=r'genpool\.encoder\.register\("NAME", ScaledEncoder\)'):
        model.save_pretrained(tmp_path / "model")
    assert "ScaledEncoder has no name" in repr(model)
    genpool.encoder.register("scaled", ScaledEncoder)
    genpool.pooling.register("sum", SumPooling)
    model.save_pretrained(tmp_path / "model")
    loaded = SentenceEncoder.from_pretrained(tmp_path / "model")
    assert loaded.settings.encoder.options == {"output_dim": 3}
    assert loaded.plugins == [__name__]
    assert np.array_equal(loaded.encode(SENTENCES), model.encode(SENTENCES))
    with pytest.raises(ConfigError, match=r"pooling\.scales is Tensor, which cannot be saved"):
        parts(text, lambda dim: SumPooling(dim, torch.ones(2))).save_pretrained(tmp_path / "other")


class CountingEncoder(SentenceEncoder):
    """A subclass with something of its own."""

    def count(self) -> int:
        return len(self.text.vocabulary)


def test_a_subclass_is_saved_and_loaded(sentence_encoder: SentenceEncoder, tmp_path: Path) -> None:
    model = CountingEncoder.from_settings(sentence_encoder.text, sentence_encoder.settings)
    model.save_pretrained(tmp_path / "model")
    loaded = CountingEncoder.from_pretrained(tmp_path / "model")
    assert type(loaded) is CountingEncoder and loaded.count() == model.count()
    plain = SentenceEncoder.from_pretrained(tmp_path / "model")
    assert np.array_equal(plain.encode(SENTENCES), loaded.encode(SENTENCES))


def test_a_plugin_is_named_by_the_folder_and_imported_only_by_its_user(
    sentence_encoder: SentenceEncoder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    registered: None,
) -> None:
    (tmp_path / "my_pooling.py").write_text(PLUGIN.format(name="first"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # which the plugin's folder is added to
    folder = tmp_path / "model"
    sentence_encoder.save_pretrained("text")
    code = """
from genpool import SentenceEncoder
from genpool.config import EmbeddingSettings, ModelSettings, Part
from genpool.registry import load_plugins
load_plugins(["my_pooling"])
text = SentenceEncoder.from_pretrained("text").text
settings = ModelSettings(
    embedding=EmbeddingSettings(word_dim=4, character_maps=2),
    encoder=Part("bilstm", {"hidden_dim": 3}),
    pooling=Part("first", {"scale": 2}),
)
model = SentenceEncoder.from_settings(text, settings)
model.save_pretrained("model")
print(model.encode(["a dog runs ."] * 2).sum())
with model.streaming_form(workers=2) as pool:
    print(sum(chunk.sum() for chunk in pool.encode_stream(["a dog runs ."] * 2)).item())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    expected, by_workers = map(float, done.stdout.split())
    assert by_workers == pytest.approx(expected, abs=1e-5)
    with pytest.raises(FolderError) as caught:
        SentenceEncoder.from_pretrained(folder)
    message = str(caught.value)
    assert "unknown pooling 'first'" in message and "--plugin my_pooling" in message
    assert 'from_pretrained(path, plugins=["my_pooling"])' in message
    assert "my_pooling" not in sys.modules
    try:
        loaded = SentenceEncoder.from_pretrained(folder, plugins=["my_pooling"])
        assert loaded.encode(["a dog runs ."] * 2).sum() == pytest.approx(expected, abs=1e-5)
        weights = loaded.explain("a dog runs .").token_weights  # (1, tokens)
        np.testing.assert_allclose(weights, [[2, 0, 0, 0]], atol=1e-6)
    finally:
        sys.modules.pop("my_pooling", None)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be imported: ModuleNotFoundError"),
        ("1 / 0", "cannot be imported: ZeroDivisionError"),
        (PLUGIN.format(name="mean"), r"plugin bad_plugin_\d+: .*MeanPooling; select another name"),
        ("import genpool.pooling; genpool.pooling.register('x', int)", "expected a subclass of"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_told_before_any_work(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    registered: None,
    content: str | None,
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    name = f"bad_plugin_{len(content or '')}"
    if content is not None:
        (tmp_path / f"{name}.py").write_text(content)
    with pytest.raises(ConfigError, match=problem):
        SentenceEncoder.from_pretrained("no-folder", plugins=[name])
    sys.modules.pop(name, None)
