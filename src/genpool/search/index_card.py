"""index.json: what an index holds and which model made it."""

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
    """The model of an index: its fingerprint, and, where they are known, its folder and title."""

    fingerprint: str
    path: str | None = None
    title: str | None = None

    @classmethod
    def of(cls, encoder: SentenceVectors, path: str | Path | None = None) -> Self:
        model = model_of(encoder)
        title = model.notes.get("title")
        # The whole path: the index may be searched from another working folder.
        place = None if path is None else str(Path(path).resolve())
        return cls(fingerprint(model), place, title if isinstance(title, str) else None)

    def __str__(self) -> str:
        names = [each for each in (self.title, self.path) if each]
        return f"{' at '.join(names) or 'a model'} ({self.fingerprint[:19]})"


@dataclass(frozen=True)
class IndexCard:
    """What index.json says. normalized: every vector has length 1, or is zeros."""

    rows: int
    dim: int
    normalized: bool
    model: ModelReference

    def write(self, folder: Path) -> None:
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
        (folder / CARD).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The card of a folder; one that is no index, or of a later version, is a FolderError."""
        content = _content(folder)
        path = folder / CARD
        rows = _value(content, "rows", int, path)
        dim = _value(content, "dim", int, path)
        if rows < 0 or dim < 1:
            raise FolderError(f"{path} is damaged: {rows} rows of {dim} numbers are not possible.")
        normalized = _value(content, "normalized", bool, path)
        model = _value(content, "model", dict, path)
        mark = ModelReference(
            _value(model, "fingerprint", str, path),
            _value(model, "path", (str, type(None)), path),
            _value(model, "title", (str, type(None)), path),
        )
        return cls(rows, dim, normalized, mark)


def _content(folder: Path) -> dict[str, Any]:
    path = folder / CARD
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "there is no such folder"
        raise FolderError(f"{folder}: {what}; expected an index made by genpool encode.")
    if not path.is_file():
        there = ", ".join(sorted(each.name for each in folder.iterdir())[:8]) or "nothing"
        hint = " It is a model: give it with --model." if (folder / "config.json").is_file() else ""
        raise FolderError(
            f"{folder} has no {CARD}, so it is not an index made by genpool encode. "
            f"It has: {there}.{hint}"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise FolderError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        given = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise FolderError(
            f'{path} is not of a genpool index: its format is {given!r}; expected "{FORMAT}".'
        )
    require_version(content.get("format_version"), FORMAT_VERSION, path)
    return content


def _value(content: dict[str, Any], name: str, kinds: type | tuple[type, ...], path: Path) -> Any:
    allowed = kinds if isinstance(kinds, tuple) else (kinds,)
    value = content.get(name)
    if type(value) not in allowed:  # by type: True is no number of rows
        names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in allowed)
        raise FolderError(f"{path} is damaged: {name!r} is {value!r}; expected {names}.")
    return value
