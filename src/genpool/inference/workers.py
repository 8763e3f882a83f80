"""Encoding on several processes: each loads the model from a temporary folder, and has one thread.

Workers never outlive their parent, however it ends: each has the end of a pipe whose other end is
open in the parent only, and exits when that one is closed.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor

from genpool.disk.atomic import temporary_path
from genpool.errors import GenpoolError, InputError
from genpool.inference.quick import QuickEncoder
from genpool.inference.sentence_vectors import (
    WINDOW_BATCHES,
    SentenceVectors,
    Vectors,
    require_batch_size,
)
from genpool.text import TruncationReport

if TYPE_CHECKING:
    from genpool.model import SentenceEncoder

#: batches that a worker encodes at a time
TASK_BATCHES = WINDOW_BATCHES // 4

#: vectors (sentences, output_dim), and what was cut and annotated (`Annotator.counts`)
WorkerResult = tuple[Vectors, TruncationReport, Counter[str]]
#: the encoder of a worker process
_encoder: QuickEncoder


class WorkerPool(SentenceVectors):
    """A sentence encoder on several processes; close it, or use it in a `with` block.

    The processes start with the first sentences, which takes a few seconds. They have the weights
    of the model at this moment, rounded to 8 bits with `int8`.

    Raises:
        InputError: workers is below 1.

    Example:
        >>> with WorkerPool(model, workers=2) as pool:
        ...     vectors = pool.encode(sentences)   # (sentences, output_dim)
    """

    def __init__(self, model: SentenceEncoder, workers: int, int8: bool = False) -> None:
        if workers < 1:
            raise InputError(f"workers is {workers}; expected 1 or more.")
        self.output_dim, self.workers = model.output_dim, workers
        self._cut, self._annotator = model.text.cut, model.text.annotator
        # A fresh interpreter: a fork could have locks of threads that it does not have.
        context = get_context("spawn")
        with ExitStack() as resources:
            folder = resources.enter_context(model_folder())
            model.save_pretrained(folder)
            stop_receiver, self._stop_sender = context.Pipe(duplex=False)
            resources.callback(stop_receiver.close)
            resources.callback(self._stop_sender.close)
            load = partial(type(model).from_pretrained, str(folder), plugins=model.plugins)
            arguments = load, str(folder), int8, stop_receiver
            self._pool = ProcessPoolExecutor(workers, context, _start_worker, arguments)
            resources.callback(self._pool.shutdown, wait=True, cancel_futures=True)
            self._resources = resources.pop_all()

    def _encode_texts(
        self, texts: Iterator[str], batch_size: int, done: Callable[[int], object]
    ) -> Iterator[Tensor]:
        """Raises GenpoolError if a worker process ended before its work was done."""
        require_batch_size(batch_size)
        waiting: deque[Future[WorkerResult]] = deque()
        try:
            while task := list(islice(texts, TASK_BATCHES * batch_size)):
                waiting.append(self._pool.submit(_encode, task, batch_size))
                if len(waiting) > 2 * self.workers:
                    yield self._next(waiting, done)
            while waiting:
                yield self._next(waiting, done)
        finally:  # an error, or nobody wants the rest
            for future in waiting:
                future.cancel()

    def _next(self, waiting: deque[Future[WorkerResult]], done: Callable[[int], object]) -> Tensor:
        try:
            vectors, cut, annotated = waiting.popleft().result()
        except BrokenProcessPool as error:
            raise GenpoolError(
                f"one of {self.workers} worker processes ended before its work was done (killed, "
                "or out of memory?). Try fewer workers, or smaller batches."
            ) from error
        self._cut += cut
        if self._annotator is not None:
            self._annotator.counts.update(annotated)
        done(len(vectors))
        return torch.from_numpy(vectors)

    def close(self) -> None:
        """Ends the processes, after the task that each is working on, and removes the model."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:  # nobody waits for a result: the workers stop at once
            self._stop_sender.close()
        self.close()


def model_folder() -> AbstractContextManager[Path]:
    """Makes a temporary name; what pools that were killed have left under such names is removed."""
    user = os.getuid() if hasattr(os, "getuid") else "user"  # Windows has a folder for each user
    return temporary_path(Path(tempfile.gettempdir()) / f"genpool-workers-{user}", "model")


def _start_worker(
    load: Callable[[], SentenceEncoder], folder: str, int8: bool, stop_receiver: Connection
) -> None:
    global _encoder
    torch.set_num_threads(1)
    with following_parent(stop_receiver, folder):
        _encoder = QuickEncoder(load(), int8=int8)


@contextmanager
def following_parent(stop_receiver: Connection, folder: str) -> Iterator[None]:
    """Makes this process end with its parent, and not on Ctrl-C; the block loads the model.

    The other end of the pipe is open in the parent only; the folder of the model is removed.
    """
    # Ctrl-C goes to every process of a terminal; the parent decides what happens.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_exit_with_parent, args=(stop_receiver, folder), daemon=True).start()
    try:
        yield
    except Exception:
        # The first worker that exits removes the folder, perhaps while this one reads it.
        try:
            is_stopped = stop_receiver.poll()  # nothing is sent: only a closed pipe can be read
        except OSError:  # Windows
            is_stopped = True
        if is_stopped:
            os._exit(1)
        raise


def _exit_with_parent(stop_receiver: Connection, folder: str) -> None:
    with suppress(EOFError, OSError):
        stop_receiver.recv_bytes()  # nothing is ever sent: this ends when the parent does
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _encode(sentences: list[str], batch_size: int) -> WorkerResult:
    text, before = _encoder.text, replace(_encoder.text.cut)
    counts = Counter[str]() if text.annotator is None else text.annotator.counts
    counts.clear()
    return _encoder.encode(sentences, batch_size), text.cut - before, counts
