"""The vectors of the teacher: computed once, kept on disk, continued where they stopped."""

from __future__ import annotations

import importlib.util
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genpool.disk.files import atomic_file
from genpool.errors import ConfigError, MissingExtraError
from genpool.progress import progress

#: sentences that are encoded and written together
PART = 8192

HalfVectors = NDArray[np.float16]


def teacher_folder(name: str) -> str:
    """Where a teacher is: a folder, or `package:folder` for one inside a Python package."""
    package, colon, inside = name.partition(":")
    if not colon:
        if not Path(name).is_dir():
            raise ConfigError(f"teacher.model is {name!r}; expected a folder or PACKAGE:FOLDER.")
        return name
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise ConfigError(
            f"teacher.model is {name!r}, but the Python package {package} is not installed: "
            f"pip install {package.replace('_', '-')}"
        )
    return str(Path(found.origin).parent / inside)


def load_teacher(name: str) -> Any:
    """The sentence-transformers model."""
    try:
        from sentence_transformers import SentenceTransformer
    except ModuleNotFoundError as error:
        raise MissingExtraError("a teacher", "st") from error
    return SentenceTransformer(teacher_folder(name), device="cpu")


def teacher_vectors(
    name: str, sentences: Sequence[str], folder: Path, show_progress: bool = True
) -> HalfVectors:
    """Vectors (sentences, dim) of length 1, in half precision.

    Every part of the corpus is a file in the folder; a later call finds what an earlier one made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    teacher: Any = None
    parts = []
    with progress("teacher", len(sentences), shown=show_progress) as done:
        for start in range(0, len(sentences), PART):
            part = sentences[start : start + PART]
            # The name of a file says what is in it: other sentences never find it.
            key = zlib.crc32(json.dumps([name, *part]).encode())
            path = folder / f"{start:09d}-{key:08x}.npy"
            if not path.is_file():
                teacher = teacher or load_teacher(name)
                made = teacher.encode(
                    list(part), batch_size=64, normalize_embeddings=True, show_progress_bar=False
                )
                with atomic_file(path) as temporary, temporary.open("wb") as file:
                    np.save(file, made.astype(np.float16))
            parts.append(np.load(path))
            done(len(part))
    return np.concatenate(parts)
