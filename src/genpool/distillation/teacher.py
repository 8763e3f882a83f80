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

from genpool.disk.atomic_file import atomic_file
from genpool.errors import ConfigError, require_extra
from genpool.progress import progress

#: sentences that are encoded and written together
FILE_SENTENCES = 8192

HalfVectors = NDArray[np.float16]


def teacher_folder(name: str) -> str:
    """Returns the folder of a teacher: a path, or PACKAGE:FOLDER inside a Python package."""
    package, colon, inside = name.partition(":")
    if not colon:
        if not Path(name).is_dir():
            raise ConfigError(f"teacher.model is {name!r}; expected a folder or PACKAGE:FOLDER.")
        return name
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ConfigError(
            f"teacher.model is {name!r}, but the Python package {package} is not installed: "
            f"pip install {package.replace('_', '-')}"
        )
    return str(Path(spec.origin).parent / inside)


def load_teacher(name: str) -> Any:
    """Returns the sentence-transformers model of `teacher_folder`."""
    with require_extra("a teacher", "st"):
        from sentence_transformers import SentenceTransformer
    return SentenceTransformer(teacher_folder(name), device="cpu")


def teacher_vectors(
    name: str, sentences: Sequence[str], folder: Path, show_progress: bool = True
) -> HalfVectors:
    """Returns the teacher's vectors (sentences, dim), of length 1 and in half precision.

    Args:
        name: the teacher, as in `TeacherSettings`.
        sentences: the corpus.
        folder: where the vectors are kept, one file per FILE_SENTENCES sentences; a later call
            reads what an earlier one wrote.
        show_progress: print progress on standard error. Default: True.
    """
    folder.mkdir(parents=True, exist_ok=True)
    teacher: Any = None
    parts = []
    with progress("teacher", len(sentences), shown=show_progress) as done:
        for start in range(0, len(sentences), FILE_SENTENCES):
            part = sentences[start : start + FILE_SENTENCES]
            # The name of a file identifies its content: other sentences never use it.
            key = zlib.crc32(json.dumps([name, *part]).encode())
            path = folder / f"{start:09d}-{key:08x}.npy"
            if not path.is_file():
                teacher = teacher or load_teacher(name)
                vectors = teacher.encode(
                    list(part), batch_size=64, normalize_embeddings=True, show_progress_bar=False
                )  # (part, dim)
                with atomic_file(path) as temporary, temporary.open("wb") as file:
                    np.save(file, vectors.astype(np.float16))
            parts.append(np.load(path))
            done(len(part))
    return np.concatenate(parts)
