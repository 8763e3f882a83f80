"""Which model is it? A number that two models share only if they give the same vectors."""

from __future__ import annotations

import hashlib
import json

import torch

from genpool.errors import InputError
from genpool.inference.quick_encoder import QuickEncoder
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.model import SentenceEncoder


def model_of(encoder: SentenceVectors) -> SentenceEncoder:
    """The model itself, also of its inference form."""
    model = encoder.model if isinstance(encoder, QuickEncoder) else encoder
    if not isinstance(model, SentenceEncoder):
        raise InputError(
            f"got {type(model).__name__}, whose weights cannot be told from another's; an index "
            "needs the model itself: a SentenceEncoder, on the command line without --runtime."
        )
    return model


def fingerprint(encoder: SentenceVectors) -> str:
    """SHA-256 of all that a vector depends on: weights, words, letters, and how text is split.

    Not of the files: a copy of the folder, the encoder inside a classifier, and the inference form
    of a model all have the fingerprint of the model.
    """
    model = model_of(encoder)
    settings, text = model.settings, model.text
    named = {
        "rules": settings.text.rules,
        "sentence_ends": text.sentence_ends,
        "max_length": text.max_length,
        "words": list(text.vocabulary.words),
        "characters": text.characters.characters,
        # Without their options, whose number may grow: those that matter shape the weights.
        "encoder": settings.encoder.name,
        "pooling": settings.pooling.name,
    }
    digest = hashlib.sha256(json.dumps(named, sort_keys=True).encode())
    for name, weight in sorted(model.state_dict().items()):
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
        numbers = weight.detach().cpu().contiguous().flatten()
        digest.update(numbers.view(torch.uint8).numpy().data)
    return f"sha256:{digest.hexdigest()}"
