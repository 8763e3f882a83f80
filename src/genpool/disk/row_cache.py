"""Rows of numbers for texts on disk: computed once, shared by runs, continued where they stopped.

    card.json     format, what computed the rows, and the shape of a row
    rows.f16      the rows of all texts, end to end, in half precision
    texts.index   the digest of each text, the first of its rows, and their number

Rows are only appended, and a text is entered in the index after its rows are on the disk: what a
full disk or a kill leaves is an incomplete end, which the next writer cuts off.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genpool.disk.atomic import write_text_file
from genpool.disk.folder_format import FolderFormat
from genpool.disk.lock import exclusive
from genpool.errors import DataError, FolderError

CARD, ROWS, INDEX = "card.json", "rows.f16", "texts.index"
CACHE = FolderFormat("genpool-rows", "a cache of rows", (CARD, ROWS, INDEX))
DIGEST_BYTES = 16
RECORD = np.dtype([("digest", f"V{DIGEST_BYTES}"), ("start", "<i8"), ("count", "<i8")])

HalfRows = NDArray[np.float16]


class RowCache:
    """The rows that one model has computed, by text: its vector, or the states of its tokens.

    Several processes may append at the same time. The folder is created; FolderError if it has the
    rows of another `model`, is damaged, or cannot be used.
    """

    def __init__(self, folder: Path, model: str, row_shape: tuple[int, ...]) -> None:
        self.folder, self.row_shape = folder, row_shape
        self._row_bytes = math.prod(row_shape) * np.dtype(np.float16).itemsize
        card = {"model": model, "row_shape": list(row_shape)}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / CARD).is_file():
                (folder / ROWS).touch()
                (folder / INDEX).touch()
                write_text_file(folder / CARD, CACHE.to_json(card))
            found = CACHE.read(folder)
        except OSError as error:
            raise FolderError(f"{folder} cannot be used as a cache: {error}") from error
        if not found.items() >= card.items():
            raise FolderError(
                f"{folder / CARD} is {found}; expected {card}. Choose another folder for the cache."
            )
        self._places: dict[bytes, tuple[int, int]] = {}
        self._records, self._end = 0, 0  # of the index, and of the rows
        self._read_index()

    @classmethod
    def open(cls, folder: Path, model: str) -> RowCache | None:
        """Returns the cache of a folder, whatever the shape of its rows; None if there is none."""
        if not (folder / CARD).is_file():
            return None
        shape = CACHE.read(folder).get("row_shape")
        if not isinstance(shape, list) or not all(type(size) is int and size > 0 for size in shape):
            raise FolderError(f"{folder / CARD} is damaged: row_shape is {shape!r}.")
        return cls(folder, model, tuple(shape))

    @property
    def size_bytes(self) -> int:
        """The size of all rows."""
        return self._end * self._row_bytes

    def missing(self, texts: Sequence[str]) -> list[str]:
        """Returns the texts that have no rows yet, each once, in their order."""
        self._read_index()
        return [text for text in dict.fromkeys(texts) if digest(text) not in self._places]

    def places(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Returns the first row and the number of rows of texts that all have some: (texts, 2)."""
        places = [self._places[digest(text)] for text in texts]
        return np.array(places, dtype=np.int64).reshape(-1, 2)

    def rows(self) -> HalfRows:
        """Returns all rows (rows, *row_shape), mapped into memory."""
        shape = (self._end, *self.row_shape)
        if not self._end:  # an empty file cannot be mapped
            return np.empty(shape, dtype=np.float16)
        return np.memmap(self.folder / ROWS, dtype=np.float16, mode="r", shape=shape)

    def append(self, texts: Sequence[str], arrays: Sequence[NDArray[Any]] | NDArray[Any]) -> None:
        """Adds the rows of texts: for each an array (rows, *row_shape), or one row.

        DataError if a value is not finite or a shape wrong, FolderError if they cannot be written.
        """
        parts = [self._checked(*pair) for pair in zip(texts, arrays, strict=True)]
        content = np.concatenate([np.empty((0, *self.row_shape), np.float16), *parts])
        records = np.zeros(len(texts), dtype=RECORD)
        records["digest"] = [np.void(digest(text)) for text in texts]
        records["count"] = [len(part) for part in parts]
        try:
            with exclusive(self.folder / INDEX):
                self._read_index()  # another process may have written in the meantime
                records["start"] = self._end + np.cumsum(records["count"]) - records["count"]
                _write_at(self.folder / ROWS, self.size_bytes, content.tobytes())
                _write_at(self.folder / INDEX, self._records * RECORD.itemsize, records.tobytes())
        except OSError as error:
            raise FolderError(
                f"{self.folder} cannot be written: {error.strerror or error}. What was there is "
                "kept; make room and run the same command again."
            ) from error
        self._read_index()

    def _checked(self, text: str, array: NDArray[Any]) -> HalfRows:
        """Returns the rows of a text in half precision: (rows, *row_shape)."""
        with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused
            half = np.asarray(array, dtype=np.float16)
        if half.shape == self.row_shape:
            half = half[None]
        is_finite = bool(np.isfinite(half).all())
        if half.shape[1:] == self.row_shape and is_finite:
            return half
        given = f"an array {half.shape}" if is_finite else "NaN or infinity"
        raise DataError(
            f"the model returned {given} for {text!r}; expected finite values of shape "
            f"{self.row_shape}. The rows of earlier texts are kept",
            self.folder,
        )

    def _read_index(self) -> None:
        """Reads the records that were added since; the last one may be incomplete."""
        path = self.folder / INDEX
        try:
            count = path.stat().st_size // RECORD.itemsize - self._records
            added = np.fromfile(path, RECORD, count, offset=self._records * RECORD.itemsize)
            available = (self.folder / ROWS).stat().st_size // self._row_bytes
        except OSError as error:
            raise FolderError(f"{self.folder} cannot be read: {error}") from error
        for key, start, rows in added.tolist():
            if start < 0 or rows < 0 or start + rows > available:
                raise FolderError(
                    f"{path} does not belong to {ROWS} beside it: one of them was cut or "
                    f"replaced. Remove the folder {self.folder}; its rows are computed again."
                )
            self._places[key] = start, rows
            self._end = max(self._end, start + rows)
        self._records += len(added)


def digest(text: str) -> bytes:
    """Returns what a text is found by; half of a surrogate pair has one too."""
    encoded = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(encoded, digest_size=DIGEST_BYTES).digest()


def _write_at(path: Path, position: int, content: bytes) -> None:
    """Writes at a position and forgets what was behind it; all of it reaches the disk."""
    with path.open("r+b") as file:
        file.seek(position)
        file.truncate()
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
