"""index.json: what an index contains and which model made it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch

from genpool.config import EmbeddingSettings
from genpool.disk.atomic import require_version
from genpool.errors import FolderError, InputError
from genpool.inference.quick_encoder import QuickEncoder
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.sentence_encoder import SentenceEncoder

CARD = "index.json"
FORMAT, FORMAT_VERSION = "genpool-index", 2
#: the version of an index without columns and without lists: earlier versions read it too
PLAIN_VERSION = 1


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
        model = self.model
        later = {"columns": list(self.columns), "id": self.id, "lists": self.lists}
        is_plain = not (self.columns or self.lists)
        content = {
            "format": FORMAT,
            "format_version": PLAIN_VERSION if is_plain else FORMAT_VERSION,
            "rows": self.rows,
            "dim": self.dim,
            "normalized": self.normalized,
            "model": {
                "fingerprint": model.fingerprint,
                "path": model.path,
                "title": model.title,
            },
            **({} if is_plain else later),
        }
        text = json.dumps(content, indent=2) + "\n"
        (folder / CARD).write_text(text, encoding="utf-8", newline="\n")

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Reads the index.json of a folder.

        Raises:
            FolderError: the folder is no index, is damaged, or was written by a newer genpool.
        """
        content = _content(folder)
        path = folder / CARD
        rows = _value(content, "rows", int, path)
        dim = _value(content, "dim", int, path)
        if rows < 0 or dim < 1:
            raise FolderError(f"{path} is damaged: {rows} rows of dimension {dim} are impossible.")
        normalized = _value(content, "normalized", bool, path)
        model = _value(content, "model", dict, path)
        reference = ModelReference(
            _value(model, "fingerprint", str, path),
            _value(model, "path", (str, type(None)), path),
            _value(model, "title", (str, type(None)), path),
        )
        if content["format_version"] == PLAIN_VERSION:
            return cls(rows, dim, normalized, reference)
        lists = _value(content, "lists", int, path)
        if not 0 <= lists <= rows:
            raise FolderError(f"{path} is damaged: {lists} lists of {rows} rows are impossible.")
        columns = _columns(content, path)
        id_ = _value(content, "id", (str, type(None)), path)
        if id_ is not None and id_ not in columns:
            raise FolderError(
                f"{path} is damaged: the column of ids, {id_!r}, is not in 'columns'."
            )
        return cls(rows, dim, normalized, reference, columns, id_, lists)


def _columns(content: dict[str, Any], path: Path) -> tuple[str, ...]:
    names = _value(content, "columns", list, path)
    if not all(type(name) is str for name in names) or len(set(names)) != len(names):
        raise FolderError(f"{path} is damaged: 'columns' is {names!r}; expected different names.")
    return tuple(names)


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


def _value(content: dict[str, Any], name: str, types: type | tuple[type, ...], path: Path) -> Any:
    allowed = types if isinstance(types, tuple) else (types,)
    value = content.get(name)
    if type(value) not in allowed:  # by type: True is no number of rows
        names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in allowed)
        raise FolderError(f"{path} is damaged: {name!r} is {value!r}; expected {names}.")
    return value


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
    if model.text.vocabulary.folding:
        values["folding"] = True
    if embedding.ngram_buckets:
        values["ngrams"] = [embedding.ngram_buckets, *embedding.ngram_sizes]
    return values
