"""The fingerprint of a model: two models share it only if they compute the same vectors."""

from __future__ import annotations

import hashlib
import json

import torch

from genpool.config import EmbeddingSettings
from genpool.errors import InputError
from genpool.inference.quick_encoder import QuickEncoder
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.sentence_encoder import SentenceEncoder


def model_of(encoder: SentenceVectors) -> SentenceEncoder:
    """Returns the model itself, also of its inference form.

    Raises:
        InputError: `encoder` is something whose weights cannot be compared, such as an ONNX graph.
    """
    model = encoder.model if isinstance(encoder, QuickEncoder) else encoder
    if not isinstance(model, SentenceEncoder):
        raise InputError(
            f"got {type(model).__name__}, whose weights cannot be compared; an index needs the "
            "model itself: a SentenceEncoder, on the command line without --runtime."
        )
    return model


def fingerprint(encoder: SentenceVectors) -> str:
    """Returns the SHA-256 of all that a vector depends on: weights, words, characters, splitting.

    Not of the files: a copy of the folder, the encoder inside a classifier, and the inference form
    of a model all have the fingerprint of the model.
    """
    model = model_of(encoder)
    settings, text = model.settings, model.text
    description: dict[str, object] = {
        "rules": settings.text.rules,
        "sentence_ends": text.sentence_ends,
        "max_length": text.max_length,
        "words": list(text.vocabulary.words),
        "characters": text.characters.characters,
        # Without their options, to which later versions add: those that matter shape the weights.
        "encoder": settings.encoder.name,
        "pooling": settings.pooling.name,
    }
    description |= _later_settings(model)
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for name, weight in sorted(model.state_dict().items()):
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
        values = weight.detach().cpu().contiguous().flatten()
        digest.update(values.view(torch.uint8).numpy().data)
    return f"sha256:{digest.hexdigest()}"


def _later_settings(model: SentenceEncoder) -> dict[str, object]:
    """Returns settings that matter and that the first indexes did not know, unless default."""
    embedding, default = model.settings.embedding, EmbeddingSettings()
    values: dict[str, object] = {}
    if not model.text.vocabulary.lower_case_fallback:
        values["lower_case_fallback"] = False
    if embedding.character_padding != default.character_padding:
        values["character_padding"] = embedding.character_padding
    if embedding.dropout_scaling != default.dropout_scaling:  # it scales vectors at inference
        values["dropout"] = embedding.dropout
    return values
