"""Vectors of sentences on disk: computed once, shared by runs, continued where they stopped.

    about.json     the teacher's name, the dimension of its vectors
    keys.bin       16 bytes for each sentence: a digest of its text
    vectors.bin    its vector, in half precision

Rows are only appended, a vector before its key. Whatever stops a writer (a full disk, `kill -9`)
leaves at most an incomplete last row, which the next one cuts off.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genpool.disk.atomic import atomic_file
from genpool.disk.lock import exclusive
from genpool.errors import DataError

KEY_BYTES = 16
ABOUT, KEYS, VECTORS = "about.json", "keys.bin", "vectors.bin"

HalfVectors = NDArray[np.float16]


class VectorCache:
    """The vectors that one teacher has computed, by sentence.

    Args:
        folder: where they are; it is created.
        teacher: what identifies the teacher; the folder keeps the vectors of one.
        dim: the dimension of a vector.

    Raises:
        DataError: the folder has the vectors of another teacher, or cannot be used.
    """

    def __init__(self, folder: Path, teacher: str, dim: int) -> None:
        self.folder, self.dim = folder, dim
        about = {"teacher": teacher, "dim": dim}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / ABOUT).is_file():
                with atomic_file(folder / ABOUT) as temporary:
                    temporary.write_text(json.dumps(about) + "\n", encoding="utf-8", newline="\n")
            found = _read_about(folder / ABOUT)
            if found != about:
                raise DataError(
                    f"contains vectors of {found}; expected {about}. Choose another folder", folder
                )
            (folder / KEYS).touch()
            (folder / VECTORS).touch()
        except OSError as error:
            raise DataError(f"cannot be used: {error.strerror or error}", folder) from error
        self._rows: dict[bytes, int] = {}
        self._read_keys()

    @classmethod
    def open(cls, folder: Path, teacher: str) -> VectorCache | None:
        """Returns the vectors of a folder; None if there are none yet."""
        if not (folder / ABOUT).is_file():
            return None
        about = _read_about(folder / ABOUT)
        dim = about.get("dim") if isinstance(about, dict) else None
        if not isinstance(dim, int) or dim < 1:
            raise DataError(f"has no dimension of vectors: {about}", folder / ABOUT)
        return cls(folder, teacher, dim)

    def __len__(self) -> int:
        return len(self._rows)

    def missing(self, sentences: Sequence[str]) -> list[str]:
        """Returns the sentences that have no vector yet, each once, in their order."""
        return [text for text in dict.fromkeys(sentences) if sentence_key(text) not in self._rows]

    def append(self, sentences: Sequence[str], vectors: NDArray[Any]) -> None:
        """Adds the vectors (sentences, dim) of sentences.

        Raises:
            DataError: a vector is not finite, or they cannot be written. Nothing that was there
                before is lost.
        """
        with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused
            half = np.asarray(vectors, dtype=np.float16)
        wrong = ~np.isfinite(half).all(axis=1)
        if half.shape != (len(sentences), self.dim) or wrong.any():
            given = (
                f"NaN or infinity for {sentences[int(wrong.argmax())]!r}"
                if wrong.any()
                else f"an array {half.shape} for {len(sentences)} sentences"
            )
            raise DataError(
                f"the teacher returned {given}; expected {self.dim} finite values for each "
                "sentence. The vectors of earlier sentences are kept",
                self.folder,
            )
        keys = b"".join(map(sentence_key, sentences))
        try:
            with exclusive(self.folder / KEYS):
                rows = self._complete_rows()
                _write_at(self.folder / VECTORS, rows * 2 * self.dim, half.tobytes())
                _write_at(self.folder / KEYS, rows * KEY_BYTES, keys)
        except OSError as error:
            raise DataError(
                f"cannot be written: {error.strerror or error}. What was there is kept; make room "
                "and run the same command again",
                self.folder,
            ) from error
        self._read_keys()

    def rows_of(self, sentences: Sequence[str]) -> NDArray[np.int64]:
        """Returns the rows of sentences that all have a vector."""
        return np.array([self._rows[sentence_key(text)] for text in sentences], dtype=np.int64)

    def vectors(self) -> HalfVectors:
        """Returns all vectors (rows, dim), mapped into memory."""
        shape = (self._complete_rows(), self.dim)
        if not shape[0]:  # an empty file cannot be mapped
            return np.empty(shape, dtype=np.float16)
        return np.memmap(self.folder / VECTORS, dtype=np.float16, mode="r", shape=shape)

    def _complete_rows(self) -> int:
        keys = (self.folder / KEYS).stat().st_size // KEY_BYTES
        return min(keys, (self.folder / VECTORS).stat().st_size // (2 * self.dim))

    def _read_keys(self) -> None:
        """Reads the keys that were added since, by this process or another one."""
        known, rows = len(self._rows), self._complete_rows()
        with (self.folder / KEYS).open("rb") as file:
            file.seek(known * KEY_BYTES)
            content = file.read((rows - known) * KEY_BYTES)
        for row in range(known, rows):
            start = (row - known) * KEY_BYTES
            key = content[start : start + KEY_BYTES]
            # Two writers may both have computed a sentence: a key of its own keeps rows countable.
            self._rows[key if key not in self._rows else key + row.to_bytes(8, "big")] = row


def sentence_key(text: str) -> bytes:
    """Returns the digest by which a sentence is found."""
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=KEY_BYTES).digest()


def _read_about(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"is not JSON: {error}", path) from None


def _write_at(path: Path, position: int, content: bytes) -> None:
    """Writes at a position and forgets what was behind it; all of it reaches the disk."""
    with path.open("r+b") as file:
        file.seek(position)
        file.truncate()
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
