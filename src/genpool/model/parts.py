"""The parts of a sentence encoder: made from settings, read back as settings, checked together."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar, cast

from torch import nn

from genpool.config import EmbeddingSettings, Part, TextSettings
from genpool.embedding import TokenEmbedding
from genpool.encoder import ENCODERS, Encoder
from genpool.errors import ConfigError, InputError, unknown_name
from genpool.pooling import Pooling
from genpool.registry import Registry
from genpool.text import TextPipeline
from genpool.text.tokenizer import RULES

Module = TypeVar("Module")
#: settings that arguments of `TokenEmbedding` have the names of
SHARED_NAMES = {*inspect.signature(TokenEmbedding).parameters} & {
    *EmbeddingSettings.__dataclass_fields__
} - {"characters"}


def build_module(classes: Registry[Module], part: Part, input_dim: int) -> Module:
    """Returns the encoder or the pooling that settings name.

    Raises:
        ConfigError: the class or one of the options does not exist.
        InputError: a size that is not possible.
    """
    cls = classes.require(part.name)
    known = list(inspect.signature(cls).parameters)[1:]
    if unknown := [key for key in part.options if key not in known]:
        title = f"option of {classes.kind} {part.name!r}"
        raise ConfigError([unknown_name(title, key, known) for key in unknown])
    module: Module = cast(Any, cls)(input_dim, **part.options)
    return module


def build_embedding(text: TextPipeline, settings: EmbeddingSettings) -> TokenEmbedding:
    """Returns the embedding that settings describe, for the words and characters of a pipeline.

    Raises:
        ConfigError: the pipeline makes other n-grams than the settings say.
    """
    if text.characters.buckets != settings.ngram_buckets:
        raise ConfigError(
            f"embedding.ngram_buckets is {settings.ngram_buckets}, but the text pipeline has "
            f"{text.characters.buckets}; create it with "
            "genpool.config.ngrams_of(settings.embedding)."
        )
    ids, has_ngrams = len(text.characters), settings.ngram_buckets > 0
    return TokenEmbedding(
        len(text.vocabulary),
        characters=ids if settings.characters and not has_ngrams else 0,
        ngrams=ids if has_ngrams else 0,
        **{name: getattr(settings, name) for name in SHARED_NAMES},
    )


def embedding_settings(embedding: TokenEmbedding, text: TextPipeline) -> EmbeddingSettings:
    """Returns the settings of an embedding, without what the pipeline decides."""
    shared = {name: embedding.options[name] for name in SHARED_NAMES}
    shared["character_widths"] = tuple(shared["character_widths"])
    if text.characters.buckets:
        shared["ngram_sizes"] = tuple(cast(Any, text.characters).sizes)
    return EmbeddingSettings(
        characters=embedding.spelling is not None,
        ngram_buckets=text.characters.buckets,
        **shared,
    )


def text_settings(text: TextPipeline) -> TextSettings:
    """Returns the settings of what a text pipeline does."""
    rules = text.tokenizer.rules
    return TextSettings(
        # tokenizer.json has the rules themselves; those of another version have no name here.
        rules=cast(Any, rules if rules in RULES else "penn"),
        sentence_ends=text.sentence_ends,
        max_length=text.max_length,
        lower_case_fallback=text.vocabulary.lower_case_fallback,
        folding=text.vocabulary.folding,
    )


def require_fitting_parts(
    text: TextPipeline,
    embedding: TokenEmbedding,
    encoder: Encoder,
    pooling: Pooling,
    projection: nn.Linear | None,
) -> None:
    """Raises InputError for parts of a model that do not fit together."""
    sizes = [
        ("the embedding", "words", len(embedding.words), len(text.vocabulary), "the vocabulary"),
        ("the encoder", "input_dim", encoder.input_dim, embedding.output_dim, "the embedding"),
        ("the pooling", "input_dim", pooling.input_dim, encoder.output_dim, "the encoder"),
    ]
    characters = embedding.options["characters"] or embedding.options["ngrams"]
    if characters:
        expected = len(text.characters)
        sizes.append(("the embedding", "characters", characters, expected, "the text pipeline"))
    if projection is not None:
        dim = projection.in_features
        sizes.append(("the projection", "in_features", dim, pooling.output_dim, "the pooling"))
    for part, size, actual, expected, source in sizes:
        if actual != expected:
            raise InputError(f"{part} has {size}={actual}; expected {expected}, as {source} has.")
    if pooling.needs_gates and not encoder.has_gates:
        able = ", ".join(name for name, cls in ENCODERS.items() if cls.has_gates)
        raise InputError(
            f"{type(pooling).__name__} needs the input gates of an LSTM, which "
            f"{type(encoder).__name__} does not have. Encoders that do: {able}."
        )
    if projection is not None and cast(Any, projection.bias) is not None:
        raise InputError("the projection has a bias; expected nn.Linear(..., bias=False).")
