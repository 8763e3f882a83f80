"""A model whose unknown words are n-grams has the same vectors as a graph."""

from __future__ import annotations

import json
import unicodedata
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

from genpool import SentenceEncoder
from genpool.config import EmbeddingSettings, ModelSettings, Part
from genpool.integrations.onnx import OnnxEncoder
from genpool.text import TextPipeline, Vocabulary, WordTokenizer
from genpool.text.vocabulary import SPECIAL_WORDS, CharacterNgrams

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


def folded_by_hand(word: str) -> str:
    parts = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", word))
    return "".join(part for part in parts if unicodedata.category(part) != "Mn").lower()


def test_the_readme_is_enough_to_make_the_inputs_without_genpool(
    model: SentenceEncoder, tmp_path: Path
) -> None:
    import onnxruntime
    from tokenizers import Tokenizer

    from genpool.integrations.onnx import export

    export(model, tmp_path)
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "folded form" in page and "CRC-32" in page and "lower-case form" not in page
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    sizes, buckets = config["ngram_sizes"], config["ngram_buckets"]
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    for sentence in ("The dog's wug runs.", "THE DOG", "blickets, w\u00fcgs!"):
        split = tokenizer.pre_tokenizer.pre_tokenize_str(
            tokenizer.normalizer.normalize_str(sentence)
        )
        words = [folded_by_hand(word) for word, _ in split]
        ids = [tokenizer.token_to_id(word) or 1 for word in words]
        spelled = []
        for word, word_id in zip(words, ids, strict=True):
            marked = f"<{word[:40]}>"
            parts = [marked[at : at + n] for n in sizes for at in range(len(marked) - n + 1)]
            unknown = dict.fromkeys([marked, *parts]) if word_id == 1 else {}
            spelled.append([4 + zlib.crc32(part.encode()) % buckets for part in unknown])
        longest = max(1, *map(len, spelled))
        inputs = {
            "word_ids": np.array([ids]),
            "letters": np.array([[row + [0] * (longest - len(row)) for row in spelled]]),
            "mask": np.ones((1, len(ids)), dtype=bool),
        }
        [vectors] = session.run(["sentence_embedding"], inputs)
        assert np.abs(vectors[0] - model.encode(sentence)).max() < 1e-5
