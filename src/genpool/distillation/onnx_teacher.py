"""A teacher in an ONNX folder: tokenizer.json and onnx/model.onnx, run by onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
from numpy.typing import NDArray

from genpool.disk.atomic import atomic_file
from genpool.errors import ConfigError, DataError, require_extra

TOKENIZER, GRAPHS = "tokenizer.json", ("onnx/model.onnx", "model.onnx")
#: sentences of similar length that are encoded together
BATCH_SENTENCES = 48

Floats = NDArray[np.float32]


def mean_pooling(states: Floats, mask: NDArray[np.int64]) -> Floats:
    """Returns the means (batch, dim) of the states (batch, time, dim) of real tokens."""
    weights = mask[:, :, None].astype(np.float32)  # (batch, time, 1)
    means: Floats = (states * weights).sum(axis=1) / weights.sum(axis=1)
    return means


def first_pooling(states: Floats, mask: NDArray[np.int64]) -> Floats:
    """Returns the state (batch, dim) of the first token, which BERT calls [CLS]."""
    return states[:, 0]


POOLINGS = {"mean": mean_pooling, "cls": first_pooling}


def graph_of(folder: Path) -> Path | None:
    """Returns the graph of an ONNX folder, or None."""
    return next((folder / name for name in GRAPHS if (folder / name).is_file()), None)


class OnnxTeacher:
    """Returns sentence vectors of length 1 from a graph of token states.

    Args:
        folder: the folder, with tokenizer.json and onnx/model.onnx.
        pooling: "mean" of the tokens, or "cls", the first one.
        max_tokens: tokens of a sentence that are read.
        int8_file: where the graph is kept with weights of 8 bits, two to three times as fast; it
            is made when it is not there. None for the graph as it is.

    Raises:
        ConfigError: a file is missing, or cannot be used.
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
        self._pool = POOLINGS[pooling]
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
        mask = real.astype(np.int64)
        inputs: dict[str, Any] = {
            "input_ids": tokens,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(tokens),
        }
        feeds = {name: inputs[name] for name in inputs if name in self._inputs}
        pooled = self._pool(self._session.run(None, feeds)[0], mask)  # (batch, dim)
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
