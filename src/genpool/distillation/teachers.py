"""Teachers of two kinds, their vectors on disk, and what a student learns from them."""

from __future__ import annotations

import importlib.util
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from torch import Tensor, nn
from torch.nn import functional

from genpool.disk.atomic import atomic_file
from genpool.disk.folder_format import ST_MODULES
from genpool.disk.row_cache import HalfRows, RowCache
from genpool.distillation.settings import TeacherSettings
from genpool.errors import ConfigError, DataError, require_extra
from genpool.inference.sentence_vectors import map_by_length
from genpool.progress import progress
from genpool.tensors.arrays import unit_rows

#: sentences that are encoded and written together
CHUNK_SENTENCES = 4096
#: files of an ONNX folder
TOKENIZER, GRAPH = "tokenizer.json", "onnx/model.onnx"
#: sentences of similar length that an ONNX graph encodes together
BATCH_SENTENCES = 48
#: random pairs of sentences from which the spread of a teacher's cosines is computed
SPREAD_PAIRS = 20_000
#: rows that are converted together
CHUNK_ROWS = 65536


def teacher_folder(name: str) -> Path:
    """Returns the folder of a teacher: a path, or PACKAGE:FOLDER inside a Python package."""
    package, colon, inside = name.partition(":")
    if not colon:
        if not Path(name).is_dir():
            raise ConfigError(f"teacher.model is {name!r}; expected a folder or PACKAGE:FOLDER.")
        return Path(name)
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ConfigError(
            f"teacher.model is {name!r}, but the Python package {package} is not installed: "
            f"pip install {package.replace('_', '-')}"
        )
    return Path(spec.origin).parent / inside


def open_teacher(name: str, settings: TeacherSettings, cache: Path) -> Any:
    """Returns the teacher of a folder, whose `encode` returns the vectors (sentences, dim) of a
    list; a graph in 8 bits is kept in `cache`."""
    folder = teacher_folder(name)
    if (folder / ST_MODULES).is_file():
        with require_extra("a teacher", "st"):
            from sentence_transformers import SentenceTransformer
        return SentenceTransformer(str(folder), device="cpu")
    return OnnxTeacher(folder, settings, cache)


class OnnxTeacher:
    """Returns sentence vectors of length 1 from a graph of token states, run by onnxruntime; a
    graph with weights of 8 bits, two to three times as fast, is made once, and kept in `cache`."""

    def __init__(self, folder: Path, settings: TeacherSettings, cache: Path) -> None:
        for name in (TOKENIZER, GRAPH):
            if not (folder / name).is_file():
                raise ConfigError(
                    f"the teacher {folder} has no {name}; expected the folder of a "
                    f"sentence-transformers model ({ST_MODULES}), or one with {TOKENIZER} and "
                    f"{GRAPH}."
                )
        with require_extra("a teacher in ONNX format", "onnx"):
            import onnxruntime
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / TOKENIZER))
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            options.intra_op_num_threads = torch.get_num_threads()  # as OMP_NUM_THREADS says
            graph = _quantized(folder / GRAPH, cache) if settings.int8 else folder / GRAPH
            self._session = onnxruntime.InferenceSession(
                str(graph), options, providers=["CPUExecutionProvider"]
            )
        except DataError:
            raise
        except Exception as error:  # both libraries have exceptions without a common base
            raise ConfigError(f"the teacher {folder} cannot be used: {error}") from None
        self._tokenizer.enable_truncation(settings.max_tokens)
        self._tokenizer.enable_padding()
        self._is_cls = settings.pooling == "cls"
        self._inputs = {value.name for value in self._session.get_inputs()}

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Returns the vectors (sentences, dim)."""
        chunks = map_by_length(sentences, lambda text: len(text) // 4, self._pool, BATCH_SENTENCES)
        vectors: NDArray[np.float32] = torch.cat(list(chunks)).numpy()
        return vectors

    def _pool(self, sentences: list[str]) -> Tensor:
        encodings = self._tokenizer.encode_batch(sentences)
        inputs = {
            "input_ids": [encoding.ids for encoding in encodings],
            "attention_mask": [encoding.attention_mask for encoding in encodings],
            "token_type_ids": [encoding.type_ids for encoding in encodings],
        }
        feeds = {name: np.array(inputs[name], np.int64) for name in inputs if name in self._inputs}
        states = torch.from_numpy(self._session.run(None, feeds)[0])  # (batch, time, dim)
        mask = torch.tensor(inputs["attention_mask"]).unsqueeze(2)  # (batch, time, 1)
        # "cls" is the state of the first token.
        pooled = states[:, 0] if self._is_cls else (states * mask).sum(dim=1) / mask.sum(dim=1)
        return functional.normalize(pooled, dim=1)  # (batch, dim)


def _quantized(graph: Path, cache: Path) -> Path:
    """Returns the file of a graph with weights of 8 bits, which is written unless it is there."""
    if not (target := cache / "int8.onnx").is_file():
        from onnxruntime.quantization import QuantType, quantize_dynamic

        cache.mkdir(parents=True, exist_ok=True)
        with atomic_file(target) as temporary:
            quantize_dynamic(graph, temporary, weight_type=QuantType.QInt8, per_channel=True)
    return target


def teacher_vectors(
    name: str,
    sentences: Sequence[str],
    folder: Path,
    settings: TeacherSettings,
    show_progress: bool = True,
) -> HalfRows:
    """Returns the teacher's vectors (sentences, dim), of length 1 and in half precision; they are
    kept below `folder`, where a later call, of this run or another, finds them."""
    # What decides the vectors of an ONNX graph, where it is not the default.
    chosen, default = vars(settings), vars(TeacherSettings())
    changed = [key for key in ("pooling", "max_tokens", "int8") if chosen[key] != default[key]]
    identity = ", ".join([name, *(f"{key}={chosen[key]}" for key in changed)])
    readable = re.sub(r"[^A-Za-z0-9]+", "-", identity).strip("-")[-40:]
    place = folder / f"{readable}-{zlib.crc32(identity.encode()):08x}"
    cache = RowCache.open(place, identity)
    todo = list(dict.fromkeys(sentences)) if cache is None else cache.missing(sentences)
    earlier, shown = len(sentences) - len(todo), show_progress and bool(todo)
    teacher: Any = open_teacher(name, settings, place) if todo else None
    with progress("teacher", len(sentences), shown, earlier=earlier) as done:
        for start in range(0, len(todo), CHUNK_SENTENCES):
            chunk = todo[start : start + CHUNK_SENTENCES]
            vectors = unit_rows(np.asarray(teacher.encode(chunk), np.float32))  # (chunk, dim)
            cache = cache or RowCache(place, identity, vectors.shape[1:])
            cache.append(chunk, vectors)
            done(len(chunk))
    if cache is None:
        return np.empty((0, 0), dtype=np.float16)
    return cache.rows()[cache.places(sentences)[:, 0]]


def combined_targets(
    vectors: Sequence[HalfRows], settings: TeacherSettings, held_out: int = 0
) -> HalfRows:
    """Returns one vector of length 1 for each sentence, (sentences, sum of dims), from the vectors
    (sentences, dim) of every teacher.

    The cosine of two of them is the weighted mean of the teachers' cosines, each centred. The means
    are those of the sentences that are learned, which follow the first `held_out`.
    """
    centring = settings.centre_share if settings.centre or len(vectors) > 1 else 0.0
    weights, means, shares = settings.weights or (1.0,) * len(vectors), [], []
    for weight, part in zip(weights, vectors, strict=True):
        mean = centring * np.mean(part[held_out:], axis=0, dtype=np.float64)
        means.append(np.asarray(mean, np.float32))
        shares.append(weight / spread_of_cosines(part[held_out:], means[-1]))
    factors = [np.sqrt(share / sum(shares)) for share in shares]
    targets = np.empty((len(vectors[0]), sum(part.shape[1] for part in vectors)), np.float16)
    for start in range(0, len(targets), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        together = zip(vectors, means, factors, strict=True)
        parts = [f * unit_rows(part[rows].astype(np.float32) - mean) for part, mean, f in together]
        targets[rows] = np.concatenate(parts, axis=1)
    return targets


def spread_of_cosines(vectors: HalfRows, mean: NDArray[np.float32]) -> float:
    """Returns the standard deviation of the centred cosines of random pairs of sentences."""
    pairs = np.random.default_rng(0).integers(0, len(vectors), (2, SPREAD_PAIRS))
    pairs = pairs[:, pairs[0] != pairs[1]]
    left, right = unit_rows(vectors[pairs].astype(np.float32) - mean)  # (pairs, dim) each
    return max(float((left * right).sum(axis=1).std()), 1e-6)


# --- What the student learns ----------------------------------------------------------------------


def distillation_loss(
    student: Tensor, teacher: Tensor, similarity: float, widths: Sequence[int] = ()
) -> Tensor:
    """Returns the mean of 1 - cosine of vectors (batch, dim), plus `similarity` times the mean
    squared error of the cosines between different sentences of the batch: of the complete vectors,
    and of their first dimensions, of these `widths` (Matryoshka)."""
    vectors = functional.normalize(student, dim=1)  # (batch, dim)
    targets = functional.normalize(teacher, dim=1)  # (batch, dim)
    cosines, pairs = targets @ targets.T, ~torch.eye(len(targets), dtype=torch.bool)
    forms = [vectors, *(functional.normalize(student[:, :width], dim=1) for width in widths)]
    errors = [functional.mse_loss((form @ form.T)[pairs], cosines[pairs]) for form in forms]
    return 1 - (vectors * targets).sum(dim=1).mean() + similarity * torch.stack(errors).mean()


def leading_directions(vectors: HalfRows, width: int) -> Tensor:
    """Returns the axes (dim, width) of the largest variance about zero, the largest first: they
    keep the teacher's cosines, and a student that learns them can be truncated."""
    moments = torch.zeros(vectors.shape[1], vectors.shape[1], dtype=torch.float64)  # (dim, dim)
    for start in range(0, len(vectors), CHUNK_ROWS):
        chunk = torch.from_numpy(vectors[start : start + CHUNK_ROWS]).double()  # (chunk, dim)
        moments += chunk.T @ chunk
    axes = torch.linalg.eigh(moments).eigenvectors.flip(1)  # (dim, dim), largest first
    # The sign of an axis is arbitrary; this choice makes runs repeatable.
    largest = axes.gather(0, axes.abs().argmax(dim=0, keepdim=True))  # (1, dim)
    signed: Tensor = axes * largest.sign()  # (dim, dim)
    return signed[:, :width].float()


def aligned_directions(teacher: Tensor, student: Tensor) -> Tensor:
    """Returns the axes (teacher dim, student dim) that rotate the teacher's vectors closest to the
    student's (orthogonal Procrustes): a student that is trained further keeps those it learned."""
    left, _, right = torch.linalg.svd(teacher.double().T @ student.double(), full_matrices=False)
    axes: Tensor = left @ right  # (teacher dim, student dim)
    return axes.float()


def turn_to_leading_axes(projection: nn.Linear, axes: Tensor, vectors: HalfRows) -> Tensor:
    """Rotates the projection of a student to the axes of the largest variance, which are returned.

    Its cosines stay the same. `axes` (teacher dim, student dim) are those that it has learned,
    `vectors` (sentences, teacher dim) those of the new teacher.
    """
    leading = leading_directions(vectors, projection.out_features)  # (teacher dim, student dim)
    # The closest rotation: the two sets of axes may span different parts of the teacher's space.
    rotation = aligned_directions(axes, leading)  # (student dim, student dim)
    with torch.no_grad():
        projection.weight.copy_(rotation.T @ projection.weight)
    return leading


def agreement_by_source(
    encode: Callable[[list[str]], Any], sentences: Mapping[str, list[str]], targets: HalfRows
) -> dict[str, float]:
    """Returns Spearman's correlation of the cosines of all pairs of a source, of the student and
    of the targets (all sentences, dim), by source."""
    scores, end = {}, 0
    for source, texts in sentences.items():
        start, end = end, end + len(texts)
        if len(texts) > 2:
            vectors = encode(texts), targets[start:end].astype(np.float64)  # (texts, dim) each
            distances = (pdist(part, "cosine") for part in vectors)
            scores[source] = float(spearmanr(*distances).statistic)
    return scores
