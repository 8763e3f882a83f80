"""Which model made some vectors: its fingerprint, and where it is."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch

from genpool.errors import InputError
from genpool.inference.quick import QuickEncoder
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.model.sentence_encoder import SentenceEncoder


@dataclass(frozen=True)
class ModelReference:
    """The model that the vectors of an index were made with.

    Attributes:
        fingerprint: the SHA-256 of all that its vectors depend on.
        path: its folder, if known. Default: None.
        title: the title of its model card, if it has one. Default: None.
    """

    fingerprint: str
    path: str | None = None
    title: str | None = None

    @classmethod
    def of(cls, encoder: SentenceVectors, path: str | Path | None = None) -> Self:
        """Returns the reference to a model.

        Args:
            encoder: a SentenceEncoder, or its inference form.
            path: the folder that it was loaded from. Default: None, not known.

        Raises:
            InputError: `encoder` is not a model whose weights can be compared.

        Example:
            >>> reference = ModelReference.of(encoder, "my-model")
        """
        model = model_of(encoder)
        title = model.notes.get("title")
        # The absolute path: the index may be searched from another working folder.
        folder = None if path is None else str(Path(path).resolve())
        return cls(fingerprint(model), folder, title if isinstance(title, str) else None)

    def require_same(self, other: ModelReference, index: Path) -> None:
        """Raises InputError if the vectors of an index were made with another model."""
        if self.fingerprint != other.fingerprint:
            raise InputError(
                f"{index} was made with another model: {other}; this one is {self}. "
                "Use that model, or encode all sentences again with this one."
            )

    def __str__(self) -> str:
        names = [name for name in (self.title, self.path) if name]
        return f"{' at '.join(names) or 'a model'} ({self.fingerprint[:19]})"


def model_of(encoder: SentenceVectors) -> SentenceEncoder:
    """Returns the model itself, also of its inference form; an ONNX graph is an error."""
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
    settings, text, embedding = model.settings, model.text, model.settings.embedding
    description: dict[str, object] = {
        "rules": settings.text.rules,
        "sentence_ends": text.sentence_ends,
        "max_length": text.max_length,
        "lower_case_fallback": text.vocabulary.lower_case_fallback,
        "folding": text.vocabulary.folding,
        "words": list(text.vocabulary.words),
        "characters": text.characters.characters,
        "character_padding": embedding.character_padding,
        "ngrams": [embedding.ngram_buckets, *embedding.ngram_sizes],
        # With the scaling "test" it multiplies the vectors at inference.
        "dropout": embedding.dropout if embedding.dropout_scaling == "test" else None,
        # Without their options, to which later versions add: those that matter shape the weights.
        "encoder": settings.encoder.name,
        "pooling": settings.pooling.name,
    }
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for name, weight in sorted(model.state_dict().items()):
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
        values = weight.detach().cpu().contiguous().flatten()
        digest.update(values.view(torch.uint8).numpy().data)
    return f"sha256:{digest.hexdigest()}"
