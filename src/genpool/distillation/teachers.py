"""The teachers of a distillation: models of several kinds, whose vectors are kept on disk."""

from __future__ import annotations

import importlib.util
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import tokenizers
import torch
from numpy.typing import NDArray

from genpool.disk.atomic import atomic_file
from genpool.disk.row_cache import HalfRows, RowCache
from genpool.distillation.settings import TeacherSettings
from genpool.errors import ConfigError, DataError, require_extra
from genpool.progress import progress

#: sentences that are encoded and written together
CHUNK_SENTENCES = 4096
#: a file of every sentence-transformers folder
ST_MODULES = "modules.json"
#: files of an ONNX folder
TOKENIZER, GRAPHS = "tokenizer.json", ("onnx/model.onnx", "model.onnx")
#: sentences of similar length that an ONNX graph encodes together
BATCH_SENTENCES = 48

Floats = NDArray[np.float32]


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
    """Returns the teacher of a folder, by what is in it; the graph in 8 bits is kept in `cache`."""
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

    They are kept below `folder`: a later call, of this run or another, computes only those of new
    sentences. ConfigError if the teacher cannot be used, DataError if it returned NaN, FolderError
    if its vectors cannot be written; those of earlier sentences are kept.
    """
    settings = settings or TeacherSettings()
    identity = _identity(name, settings)
    readable = re.sub(r"[^A-Za-z0-9]+", "-", identity).strip("-")[-40:]
    place = folder / f"{readable}-{zlib.crc32(identity.encode()):08x}"
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


def graph_of(folder: Path) -> Path | None:
    """Returns the graph of an ONNX folder, or None."""
    return next((folder / name for name in GRAPHS if (folder / name).is_file()), None)


class OnnxTeacher:
    """Returns sentence vectors of length 1 from a graph of token states, run by onnxruntime.

    `int8_file` is where the graph is kept with weights of 8 bits, two to three times as fast; it is
    made when it is not there.
    """

    def __init__(
        self, folder: Path, pooling: str, max_tokens: int, int8_file: Path | None = None
    ) -> None:
        with require_extra("a teacher in ONNX format", "onnx"):
            import onnxruntime
        graph = graph_of(folder)
        missing = [TOKENIZER] if not (folder / TOKENIZER).is_file() else []
        missing += ["onnx/model.onnx"] if graph is None else []
        if missing or graph is None:
            raise ConfigError(
                f"the teacher {folder} has no {' and no '.join(missing)}; expected the folder of a "
                "sentence-transformers model, or one with tokenizer.json and onnx/model.onnx."
            )
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / TOKENIZER))
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            options.intra_op_num_threads = torch.get_num_threads()  # as OMP_NUM_THREADS says
            path = graph if int8_file is None else _quantized(graph, int8_file)
            self._session = onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        except DataError:
            raise
        except Exception as error:  # both libraries have exceptions without a common base
            raise ConfigError(f"the teacher {folder} cannot be used: {error}") from None
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        self._pooling = pooling
        self._inputs = {value.name for value in self._session.get_inputs()}

    def encode(self, sentences: Sequence[str]) -> Floats:
        """Returns the vectors (sentences, dim)."""
        encodings = self._tokenizer.encode_batch(list(sentences))
        order = np.argsort([len(encoding.ids) for encoding in encodings], kind="stable")
        vectors: Floats | None = None
        for start in range(0, len(order), BATCH_SENTENCES):
            rows = order[start : start + BATCH_SENTENCES]
            pooled = self._batch([encodings[row].ids for row in rows])  # (batch, dim)
            if vectors is None:
                vectors = np.empty((len(sentences), pooled.shape[1]), dtype=np.float32)
            vectors[rows] = pooled
        return np.empty((0, 0), np.float32) if vectors is None else vectors

    def _batch(self, ids: list[list[int]]) -> Floats:
        lengths = np.array([len(row) for row in ids])  # (batch,)
        real = np.arange(lengths.max()) < lengths[:, None]  # (batch, time)
        tokens = np.zeros(real.shape, dtype=np.int64)
        tokens[real] = np.concatenate(ids)
        inputs: dict[str, Any] = {
            "input_ids": tokens,
            "attention_mask": real.astype(np.int64),
            "token_type_ids": np.zeros_like(tokens),
        }
        feeds = {name: inputs[name] for name in inputs if name in self._inputs}
        states = self._session.run(None, feeds)[0]  # (batch, time, dim)
        if self._pooling == "cls":
            pooled = states[:, 0]  # (batch, dim), of the first token
        else:
            weights = real[:, :, None].astype(np.float32)  # (batch, time, 1)
            pooled = (states * weights).sum(axis=1) / weights.sum(axis=1)  # (batch, dim)
        lengths_of_vectors = np.linalg.norm(pooled, axis=1, keepdims=True)
        unit: Floats = pooled / np.maximum(lengths_of_vectors, 1e-12)
        return unit


def _quantized(graph: Path, target: Path) -> Path:
    """Returns the graph with weights of 8 bits, which is made if it is not there."""
    if not target.is_file():
        from onnxruntime.quantization import QuantType, quantize_dynamic

        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(target) as temporary:
            quantize_dynamic(graph, temporary, weight_type=QuantType.QInt8, per_channel=True)
    return target
