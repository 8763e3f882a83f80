"""Every encoder and every pooling as an ONNX graph: the vectors of the model it was made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from genpool.config import EmbeddingSettings, Part, ProjectionSettings, TextSettings
from genpool.encoder import ENCODERS, BagOfWordsEncoder, Encoder
from genpool.errors import InputError
from genpool.integrations.onnx import OnnxEncoder, export
from genpool.integrations.onnx.traced import traced_encoder
from genpool.pooling import POOLINGS
from tests.helpers.small_models import MakeEncoder

from .onnx_comparison import SENTENCES, largest_difference, padded_vectors

BOTH = Part("stacked-bilstm", {"hidden_dim": 3, "layers": 2, "shortcut": "both"})
WORDS_ONLY = EmbeddingSettings(word_dim=4, characters=False)
#: as in the authors' released program: filters start at a character, vectors are halved at test
RELEASED = EmbeddingSettings(
    word_dim=4,
    character_dim=3,
    character_maps=2,
    character_padding="right",
    dropout_scaling="test",
)
#: an export takes seconds: every encoder once, every pooling once, and each with another option
MODELS: list[tuple[str | Part, str, dict[str, Any]]] = [
    ("stacked-bilstm", "generalized", {"projection": ProjectionSettings(dim=7)}),
    (BOTH, "max", {"embedding": WORDS_ONLY}),
    ("bilstm", "last", {"text": TextSettings(sentence_ends=True, max_length=9)}),
    ("shortcut-stacked", "gated", {}),
    ("residual-stacked", "scalar", {}),
    (Part("lstm", {"hidden_dim": 5, "layers": 2}), "gated", {}),
    (Part("gru", {"hidden_dim": 5, "layers": 2}), "inner", {}),
    ("cnn", "mean", {"embedding": RELEASED}),
    ("disan", "source-to-token", {}),
    ("bag-of-words", "mean", {"text": TextSettings(rules="whitespace")}),
    ("cafe", "mean-max", {}),
    (Part("cafe", {"hidden_dim": 10, "factors": 3}), "max", {}),
    ("resan", "source-to-token", {}),
]
#: encoders whose control flow depends on the length of a sentence, or that read its syntax tree
REFUSED = {"nse", "spinn", "tree-cnn", "nti", "gumbel-tree"}


def name_of(encoder: str | Part) -> str:
    return encoder if isinstance(encoder, str) else encoder.name


def test_every_encoder_and_every_pooling_is_among_them() -> None:
    assert {name_of(encoder) for encoder, _, _ in MODELS} == set(ENCODERS) - REFUSED
    assert {pooling for _, pooling, _ in MODELS} == set(POOLINGS)


@pytest.mark.parametrize(
    ("encoder", "pooling", "sections"), MODELS, ids=lambda value: str(value)[:40]
)
def test_the_graph_returns_the_vectors_of_the_padded_model(
    make_encoder: MakeEncoder,
    tmp_path: Path,
    encoder: str | Part,
    pooling: str,
    sections: dict[str, Any],
) -> None:
    model = make_encoder(pooling, encoder, **sections)
    done = export(model, tmp_path / "out")
    assert done.difference < 1e-6
    graph = OnnxEncoder.from_pretrained(tmp_path / "out")
    expected = padded_vectors(model, SENTENCES)
    assert np.abs(expected[0] - expected[2]).max() > 1e-2  # sentences can be told apart
    for batch_size in (1, 2, 64):
        assert largest_difference(graph, model, batch_size) < 1e-6
    empty = np.asarray(graph.encode(["", ""]))
    assert empty.shape == (2, model.output_dim)
    assert bool(empty.any()) == model.text.sentence_ends  # ends are tokens, too


class Strange(BagOfWordsEncoder):
    """A kind of an encoder that has a form for graphs."""


class Foreign(Encoder):
    """An encoder that has none."""


def test_an_encoder_without_a_form_is_refused_in_words(make_encoder: MakeEncoder) -> None:
    traced_encoder(Strange(3))
    with pytest.raises(InputError, match=r"Foreign has no form .* stacked-bilstm, bilstm"):
        traced_encoder(Foreign(3, 3))


@pytest.mark.parametrize("encoder", sorted(REFUSED))
def test_an_encoder_that_no_graph_can_contain_is_refused_and_nothing_is_written(
    make_encoder: MakeEncoder, tmp_path: Path, encoder: str
) -> None:
    model = make_encoder("last", encoder)
    with pytest.raises(InputError, match=r"has no form for an ONNX graph.*stacked-bilstm"):
        export(model, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_model_may_be_in_training_and_in_double_precision(
    make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    """The graph is neither, and the model stays as it is."""
    model = make_encoder("max", "bag-of-words").double().train()
    export(model, tmp_path / "out")
    assert model.dtype is torch.float64
    assert all(part.training for part in model.modules())
    graph = OnnxEncoder.from_pretrained(tmp_path / "out")
    assert largest_difference(graph, model) < 1e-6
