"""Encoding on several processes: each has the model for itself, and one thread.

Small operations gain little from a second thread and wait for Python's lock; whole processes do
not. Every process loads the model from a folder, so nothing of it has to be sent.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genpool.errors import GenpoolError, InputError
from genpool.inference.batching import WINDOW
from genpool.inference.quick_encoder import EncoderParts, QuickEncoder
from genpool.inference.sentence_vectors import require_texts

Vectors = NDArray[np.float32]

#: the encoder of a worker process
_own: QuickEncoder


class WorkerResult(NamedTuple):
    """What a worker sends back: vectors, and how much a maximum length has cut off."""

    vectors: Vectors
    cut_sentences: int
    cut_tokens: int


class SavedEncoder(EncoderParts, Protocol):
    """A `SentenceEncoder`: a model that can be saved, and loaded in another process."""

    def save_pretrained(self, path: str | Path, int8: bool = False) -> None: ...
    @classmethod
    def from_pretrained(cls, path: str | Path | None = None) -> Self: ...


class WorkerPool:
    """A sentence encoder on several processes; close it, or use it in a `with` block.

    Example:
        >>> with WorkerPool(model, workers=2) as pool:
        ...     vectors = pool.encode(sentences)
    """

    def __init__(self, model: SavedEncoder, workers: int, int8: bool = False) -> None:
        if workers < 1:
            raise InputError(f"workers is {workers}; expected 1 or more.")
        self.output_dim, self.workers = model.output_dim, workers
        self._cut = model.text.cut
        self._folder = tempfile.TemporaryDirectory(prefix="genpool-")
        model.save_pretrained(Path(self._folder.name) / "model")
        # A fresh interpreter: a copy of this one could hold locks of threads that it has not.
        self._pool = ProcessPoolExecutor(
            workers,
            mp_context=get_context("spawn"),
            initializer=_begin,
            initargs=(type(model), str(Path(self._folder.name) / "model"), int8),
        )

    def encode(self, sentences: Iterable[str], batch_size: int = 64) -> Vectors:
        """Vectors (sentences, output_dim), in the order given."""
        chunks = [each.numpy() for each in self.encode_stream(sentences, batch_size)]
        return np.concatenate(chunks) if chunks else np.zeros((0, self.output_dim), np.float32)

    def encode_stream(
        self,
        sentences: Iterable[str],
        batch_size: int = 64,
        done: Callable[[int], object] = lambda count: None,
    ) -> Iterator[Tensor]:
        """Vectors of a stream of any length, in chunks (n, output_dim) and in order."""
        texts = require_texts(sentences)
        waiting: deque[Future[WorkerResult]] = deque()
        try:
            while some := list(islice(texts, WINDOW * batch_size // 4)):
                waiting.append(self._pool.submit(_encode, some, batch_size))
                if len(waiting) > 2 * self.workers:
                    yield self._next(waiting, done)
            while waiting:
                yield self._next(waiting, done)
        finally:  # an error, or nobody wants the rest
            for each in waiting:
                each.cancel()

    def _next(self, waiting: deque[Future[WorkerResult]], done: Callable[[int], object]) -> Tensor:
        try:
            encoded = waiting.popleft().result()
        except BrokenProcessPool as error:
            raise GenpoolError(
                f"one of {self.workers} worker processes ended before its work was done (killed, "
                "or out of memory?). Try fewer workers, or smaller batches."
            ) from error
        self._cut.sentences += encoded.cut_sentences
        self._cut.tokens += encoded.cut_tokens
        done(len(encoded.vectors))
        return torch.from_numpy(encoded.vectors)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _begin(model_class: type[SavedEncoder], folder: str, int8: bool) -> None:
    global _own
    torch.set_num_threads(1)
    _own = QuickEncoder(model_class.from_pretrained(folder), int8=int8)


def _encode(sentences: list[str], batch_size: int) -> WorkerResult:
    cut = _own.text.cut
    before = cut.sentences, cut.tokens
    vectors = np.asarray(_own.encode(sentences, batch_size))
    return WorkerResult(vectors, cut.sentences - before[0], cut.tokens - before[1])
