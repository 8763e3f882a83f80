"""index.json: what an index contains and which model made it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, get_args, get_type_hints

import torch

from genpool.disk.folder_format import FolderFormat
from genpool.errors import FolderError, InputError
from genpool.inference.quick import QuickEncoder
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.model import SentenceEncoder

CARD, VECTORS, SENTENCES, OFFSETS = "index.json", "vectors.npy", "sentences.utf8", "offsets.npy"
VALUES, VALUE_OFFSETS = "columns.jsonl", "column_offsets.npy"
LISTS, SIZES, CENTROIDS, RANGES = "lists.bin", "list_sizes.npy", "centroids.npy", "code_ranges.npy"
#: the files of every index, and those of one with columns, or with lists
OWN_FILES, VALUE_FILES = (CARD, VECTORS, SENTENCES, OFFSETS), (VALUES, VALUE_OFFSETS)
LIST_FILES = (LISTS, SIZES, CENTROIDS, RANGES)


def _hint(folder: Path, content: object) -> str:
    return " It is a model: give it with --model." if (folder / "config.json").is_file() else ""


INDEX = FolderFormat(
    "genpool-index",
    "an index made by genpool encode",
    (*OWN_FILES, *VALUE_FILES, *LIST_FILES),
    _hint,
)


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


@dataclass(frozen=True)
class IndexCard:
    """The content of index.json."""

    rows: int  # the number of sentences
    dim: int  # the dimension of the vectors
    normalized: bool  # whether every vector has length 1, or is zeros
    model: ModelReference  # the model that the vectors were made with
    columns: tuple[str, ...] = ()  # the names of the columns that are kept beside the sentences
    id: str | None = None  # the column of the ids, one of `columns`
    lists: int = 0  # how many lists an approximate search chooses from; 0: all rows are compared

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Reads the index.json of a folder; FolderError if it is damaged or not an index."""
        path, hints = folder / CARD, get_type_hints(cls) | {"model": dict, "columns": list}
        values = _require_types(INDEX.read(folder), hints, path)
        model = _require_types(values["model"], get_type_hints(ModelReference), path)
        columns = tuple(values["columns"])
        card = cls(**{**values, "model": ModelReference(**model), "columns": columns})
        problem = None
        if card.rows < 0 or card.dim < 1:
            problem = f"{card.rows} rows of dimension {card.dim} are impossible"
        elif not 0 <= card.lists <= card.rows:
            problem = f"{card.lists} lists of {card.rows} rows are impossible"
        elif not all(type(name) is str for name in columns) or len(set(columns)) < len(columns):
            problem = f"'columns' is {values['columns']!r}; expected different names"
        elif card.id is not None and card.id not in columns:
            problem = f"the column of ids, {card.id!r}, is not in 'columns'"
        if problem:
            raise FolderError(f"{path} is damaged: {problem}.")
        return card


def _require_types(content: dict[str, Any], hints: dict[str, Any], path: Path) -> dict[str, Any]:
    """Returns the named values of a JSON object, each of which must be of the type of its hint."""
    for name, hint in hints.items():
        value, allowed = content.get(name), get_args(hint) or (hint,)
        if type(value) not in allowed:  # by type: True is not a number of rows
            names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in allowed)
            raise FolderError(f"{path} is damaged: {name!r} is {value!r}; expected {names}.")
    return {name: content.get(name) for name in hints}


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
