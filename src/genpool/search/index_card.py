"""index.json: what an index contains and which model made it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import torch

from genpool.disk.atomic import require_version
from genpool.errors import FolderError, InputError
from genpool.inference.quick import QuickEncoder
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.model import SentenceEncoder

CARD = "index.json"
FORMAT, FORMAT_VERSION = "genpool-index", 1


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

    def __str__(self) -> str:
        names = [name for name in (self.title, self.path) if name]
        return f"{' at '.join(names) or 'a model'} ({self.fingerprint[:19]})"


@dataclass(frozen=True)
class IndexCard:
    """The content of index.json.

    Attributes:
        rows: the number of sentences.
        dim: the dimension of the vectors.
        normalized: whether every vector has length 1, or is zeros.
        model: the model that the vectors were made with.
        columns: the names of the columns that are kept beside the sentences. Default: none.
        id: the column of the ids, one of `columns`. Default: None, the rows have no ids.
        lists: how many lists an approximate search chooses from. Default: 0, there are none, and
            every search compares all rows.
    """

    rows: int
    dim: int
    normalized: bool
    model: ModelReference
    columns: tuple[str, ...] = ()
    id: str | None = None
    lists: int = 0

    def write(self, folder: Path) -> None:
        """Writes index.json into a folder."""
        content = {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}
        text = json.dumps(content, indent=2) + "\n"
        (folder / CARD).write_text(text, encoding="utf-8", newline="\n")

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Reads the index.json of a folder; FolderError if it is damaged or not an index."""
        path = folder / CARD
        values = _require_types(_content(folder), _CARD_TYPES, path)
        model = ModelReference(**_require_types(values["model"], _MODEL_TYPES, path))
        card = cls(**{**values, "model": model, "columns": tuple(values["columns"])})
        problem = None
        if card.rows < 0 or card.dim < 1:
            problem = f"{card.rows} rows of dimension {card.dim} are impossible"
        elif not 0 <= card.lists <= card.rows:
            problem = f"{card.lists} lists of {card.rows} rows are impossible"
        elif any(type(name) is not str for name in card.columns) or len(set(card.columns)) < len(
            card.columns
        ):
            problem = f"'columns' is {values['columns']!r}; expected different names"
        elif card.id is not None and card.id not in card.columns:
            problem = f"the column of ids, {card.id!r}, is not in 'columns'"
        if problem:
            raise FolderError(f"{path} is damaged: {problem}.")
        return card


_CARD_TYPES: dict[str, tuple[type, ...]] = {
    "rows": (int,),
    "dim": (int,),
    "normalized": (bool,),
    "model": (dict,),
    "columns": (list,),
    "id": (str, type(None)),
    "lists": (int,),
}
_MODEL_TYPES: dict[str, tuple[type, ...]] = {
    "fingerprint": (str,),
    "path": (str, type(None)),
    "title": (str, type(None)),
}


def _require_types(
    content: dict[str, Any], types: dict[str, tuple[type, ...]], path: Path
) -> dict[str, Any]:
    """Returns the named values of a JSON object, each of which must be of one of its types."""
    for name, allowed in types.items():
        value = content.get(name)
        if type(value) not in allowed:  # by type: True is not a number of rows
            names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in allowed)
            raise FolderError(f"{path} is damaged: {name!r} is {value!r}; expected {names}.")
    return {name: content.get(name) for name in types}


def _content(folder: Path) -> dict[str, Any]:
    path = folder / CARD
    if not folder.is_dir():
        problem = "is a file" if folder.exists() else "there is no such folder"
        raise FolderError(f"{folder}: {problem}; expected an index made by genpool encode.")
    if not path.is_file():
        names = ", ".join(sorted(file.name for file in folder.iterdir())[:8]) or "nothing"
        hint = " It is a model: give it with --model." if (folder / "config.json").is_file() else ""
        raise FolderError(
            f"{folder} has no {CARD}, so it is not an index made by genpool encode. "
            f"It has: {names}.{hint}"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise FolderError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        kind = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise FolderError(
            f'{path} is not of a genpool index: its format is {kind!r}; expected "{FORMAT}".'
        )
    require_version(content.get("format_version"), FORMAT_VERSION, path)
    return content


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
