"""Creates the golden folders: `python tests/golden/make.py`.

They are created once for each format version, committed, and never created again: later versions
of genpool must load them and return the values in the files beside them. All words are invented.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from torch import nn

from genpool import PairClassifier, SentenceEncoder
from genpool.config import (
    ClassifierSettings,
    EmbeddingSettings,
    ModelSettings,
    Part,
    TextSettings,
)
from genpool.saving.storage import MODEL
from genpool.text import Characters, TextPipeline, Vocabulary, WordTokenizer
from genpool.text.vocabulary import CharacterNgrams

HERE = Path(__file__).parent
WORDS = ("the", "wug", "Wug", "blicks", "daxes", "n't", "tove", ",", ".", '"')
SENTENCES = [
    "The wug blicks, does n't it? (Wugs dax.)",
    "the wug daxes.",
    "Wug",
    "zorp blergs the “tove” 🐙",
    "",
    "the wug, the wug, the wug, the wug and the tove.",
]
PAIRS = [("The wug blicks.", "The tove daxes."), ("Wug.", ""), ("zorp", "zorps"), ("a", "a")]


def with_short_weights(model: nn.Module, seed: int) -> nn.Module:
    """Sets weights between -0.8 and 0.8 with four decimals: the same on every machine."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            integers = torch.randint(-8000, 8001, parameter.shape, generator=random)
            parameter.copy_(integers.float() / 10_000)
    return model.eval()


def text(settings: TextSettings) -> TextPipeline:
    vocabulary = Vocabulary.build(dict.fromkeys(WORDS, 1))
    return TextPipeline(
        WordTokenizer(settings.rules),
        vocabulary,
        Characters.build(WORDS),
        settings.sentence_ends,
        settings.max_length,
    )


def write(name: str, expected: dict[str, object]) -> None:
    content = json.dumps(expected, indent=1, ensure_ascii=False)
    (HERE / f"{name}.expected.json").write_text(content + "\n", encoding="utf-8", newline="\n")


def make_encoder(name: str) -> None:
    settings = ModelSettings(
        embedding=EmbeddingSettings(word_dim=3, character_dim=2, character_maps=2),
        encoder=Part("stacked-bilstm", {"hidden_dim": 3, "layers": 2}),
        pooling=Part("generalized", {"heads": 2}),
    )
    model = SentenceEncoder.from_settings(text(settings.text), settings)
    with_short_weights(model, 1)
    model.notes = {"title": "A golden encoder", "seed": 1}
    model.save_pretrained(HERE / name)
    write(
        name,
        {
            "sentences": SENTENCES,
            "tokens": model.text.tokens(SENTENCES[0]),
            "vectors": model.encode(SENTENCES).tolist(),
        },
    )


def make_pair_classifier(name: str) -> None:
    settings = ModelSettings(
        text=TextSettings(sentence_ends=True, max_length=9),
        embedding=EmbeddingSettings(word_dim=3, characters=False, frozen=False),
        encoder=Part("stacked-bilstm", {"hidden_dim": 2, "layers": 2, "shortcut": "both"}),
        pooling=Part("generalized", {"heads": 2, "hidden_dim": 3}),
        classifier=ClassifierSettings(hidden_dim=4),
    )
    labels = ["entailment", "neutral", "contradiction"]
    model = PairClassifier.from_settings(text(settings.text), settings, labels)
    with_short_weights(model, 103)
    model.notes = {"title": "A golden pair classifier", "seed": 103}
    model.save_pretrained(HERE / name)
    write(
        name,
        {
            "pairs": PAIRS,
            "labels": labels,
            "probabilities": model.predict_proba(PAIRS).tolist(),
            "predicted": model.predict(PAIRS),
        },
    )


def make_int4_encoder(name: str) -> None:
    """4-bit tables, n-grams for words without an entry, and folding."""
    settings = ModelSettings(
        text=TextSettings(rules="parts", folding=True, max_length=30),
        embedding=EmbeddingSettings(
            word_dim=5, characters=False, ngram_buckets=24, ngram_sizes=(3, 4)
        ),
        encoder=Part("bilstm", {"hidden_dim": 3, "layers": 1}),
        pooling=Part("generalized", {"heads": 2}),
    )
    pipeline = TextPipeline(
        WordTokenizer(settings.text.rules, folding=True),
        Vocabulary.build(dict.fromkeys(WORDS, 1), folding=True),
        CharacterNgrams(24, (3, 4)),
        max_length=settings.text.max_length,
    )
    model = SentenceEncoder.from_settings(pipeline, settings)
    with_short_weights(model, 7)
    model.notes = {"title": "A golden encoder in 4 bits", "seed": 7}
    model.save_pretrained(HERE / name, int4_tables=True)
    loaded = SentenceEncoder.from_pretrained(HERE / name)
    sentences = [*SENTENCES]
    sentences += ["The WUG doesn\u02bct blick-dax", "zorpés \uff57\uff55\uff47", "zorp\u200bes wug"]
    write(
        name,
        {
            "sentences": sentences,
            "tokens": [loaded.text.tokens(sentence) for sentence in sentences],
            "vectors": loaded.encode(sentences).tolist(),
        },
    )


def main() -> None:
    makers = {
        f"v{MODEL.version}-encoder": make_encoder,
        f"v{MODEL.version}-encoder-int4": make_int4_encoder,
        f"v{MODEL.version}-pair-classifier": make_pair_classifier,
    }
    if existing := [name for name in makers if (HERE / name).exists()]:
        sys.exit(f"{', '.join(existing)} exist already and must not change")
    for name, make in makers.items():
        make(name)


if __name__ == "__main__":
    main()
