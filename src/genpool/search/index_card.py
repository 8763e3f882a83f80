"""index.json: what an index contains and which model made it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from genpool.disk.folders import require_version
from genpool.errors import FolderError
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.search.fingerprint import fingerprint, model_of

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
    """

    rows: int
    dim: int
    normalized: bool
    model: ModelReference

    def write(self, folder: Path) -> None:
        """Writes index.json into a folder."""
        model = self.model
        content = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "rows": self.rows,
            "dim": self.dim,
            "normalized": self.normalized,
            "model": {
                "fingerprint": model.fingerprint,
                "path": model.path,
                "title": model.title,
            },
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
        return cls(rows, dim, normalized, reference)


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
