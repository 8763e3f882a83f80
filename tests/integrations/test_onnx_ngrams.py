"""A model whose unknown words are n-grams has the same vectors as a graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from genpool import SentenceEncoder
from genpool.config import EmbeddingSettings, ModelSettings, Part
from genpool.integrations.onnx import OnnxEncoder
from genpool.text import TextPipeline, Vocabulary, WordTokenizer
from genpool.text.ngrams import CharacterNgrams
from genpool.text.vocabulary import SPECIAL_WORDS

pytest.importorskip("onnxruntime")
SENTENCES = [
    "The dog's wug runs.",
    "THE DOG",
    "blickets, daxes and wugs!",
    "",
    "wüg\u200bs don\u2019t",
]


@pytest.fixture(scope="module")
def model() -> SentenceEncoder:
    text = TextPipeline(
        WordTokenizer("parts", folding=True),
        Vocabulary([*SPECIAL_WORDS, "the", "dog", "runs", ".", "n't"], folding=True),
        CharacterNgrams(60, (3, 4)),
    )
    settings = ModelSettings(
        embedding=EmbeddingSettings(
            word_dim=5, characters=False, ngram_buckets=60, ngram_sizes=(3, 4)
        ),
        encoder=Part("bilstm", {"hidden_dim": 4, "layers": 1}),
        pooling=Part("generalized", {"heads": 2}),
    )
    torch.manual_seed(0)
    encoder = SentenceEncoder(text, settings).eval()
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return encoder


def test_the_graph_returns_the_vectors_of_the_model(model: SentenceEncoder, tmp_path: Path) -> None:
    from genpool.integrations.onnx import export

    export(model, tmp_path / "graph")
    graph = OnnxEncoder.from_pretrained(tmp_path / "graph")
    expected = model.encode(SENTENCES)
    assert np.abs(graph.encode(SENTENCES) - expected).max() < 1e-5
    assert np.abs(expected[0] - expected[2]).max() > 0.05
    assert graph.text.vocabulary.folding and len(graph.text.characters) == 64
