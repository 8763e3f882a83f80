"""index.json: what an index contains and which model made it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, get_args, get_type_hints

from genpool.disk.folder_format import FolderFormat
from genpool.errors import FolderError
from genpool.model.reference import ModelReference

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
