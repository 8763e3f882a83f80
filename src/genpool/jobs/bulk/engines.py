"""What runs shards: an engine takes them one by one and yields their outcomes in any order.

`LocalEngine` uses worker processes of this machine, each with one thread. A process that dies takes
only its shard with it: another one is started in its place and does that shard again.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Protocol

import torch

from genpool.errors import GenpoolError, InputError
from genpool.inference.workers import following_parent, model_folder
from genpool.jobs.bulk.inputs import Shard
from genpool.jobs.bulk.shard import Outcome, ShardSettings, encode_shard
from genpool.model import SentenceEncoder

#: times that a worker may die over the same shard
MAX_DEATHS = 5

#: the model of a worker process, and the settings of its run
_encoder: SentenceEncoder
_settings: ShardSettings


class Engine(Protocol):
    """Encodes shards."""

    def __call__(
        self, encoder: SentenceEncoder, settings: ShardSettings, shards: Iterable[Shard]
    ) -> Iterator[Outcome]:
        """Yields the outcome of every shard; GenpoolError if one cannot be encoded or written."""


def too_many_deaths(shard: Shard) -> str:
    """Returns the message for a shard over which MAX_DEATHS workers have died."""
    first = shard.start.row + 1
    return (
        f"{MAX_DEATHS} worker processes died over {shard.name} ({shard.path}, rows {first:,} to "
        f"{first + shard.rows - 1:,}): killed, or out of memory? Finished shards are kept; try "
        "fewer workers or a smaller --batch-size, and run the command again."
    )


class LocalEngine:
    """Encodes shards with `workers` processes of this machine; with 1, in this process itself."""

    def __init__(self, workers: int = 1) -> None:
        if workers < 1:
            raise InputError(f"workers is {workers}; expected 1 or more.")
        self.workers = workers

    def __call__(
        self, encoder: SentenceEncoder, settings: ShardSettings, shards: Iterable[Shard]
    ) -> Iterator[Outcome]:
        if self.workers > 1:
            yield from _run_processes(encoder, settings, shards, self.workers)
            return
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # as in all workers: the same bytes
        try:
            for shard in shards:
                yield encode_shard(encoder, shard, settings)
        finally:
            torch.set_num_threads(threads)


def _run_processes(
    encoder: SentenceEncoder, settings: ShardSettings, shards: Iterable[Shard], workers: int
) -> Iterator[Outcome]:
    context = get_context("spawn")
    waiting, deaths = iter(shards), Counter[str]()
    running: dict[Future[Outcome], tuple[int, Shard]] = {}
    with ExitStack() as resources:
        folder = resources.enter_context(model_folder())
        encoder.save_pretrained(folder)
        # With a class, a process receives the module that registers it: a plugin is loaded.
        parts = type(encoder.encoder), type(encoder.pooling)
        receiver, sender = context.Pipe(duplex=False)
        resources.callback(receiver.close)
        pools: list[ProcessPoolExecutor] = []

        def start() -> ProcessPoolExecutor:
            return ProcessPoolExecutor(
                1,
                mp_context=context,
                initializer=_start_worker,
                initargs=(str(folder), settings, receiver, parts),
            )

        def submit(worker: int, shard: Shard) -> None:
            running[pools[worker].submit(_encode, shard)] = worker, shard

        def stop() -> None:
            sender.close()  # workers that are still busy exit at once
            for pool in pools:
                pool.shutdown(wait=True, cancel_futures=True)

        resources.callback(stop)
        for worker, shard in zip(range(workers), waiting, strict=False):
            pools.append(start())
            submit(worker, shard)
        while running:
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                worker, shard = running.pop(future)
                try:
                    outcome = future.result()
                except BrokenProcessPool:
                    deaths[shard.name] += 1
                    if deaths[shard.name] >= MAX_DEATHS:
                        raise GenpoolError(too_many_deaths(shard)) from None
                    pools[worker].shutdown(wait=False)
                    pools[worker] = start()
                    submit(worker, shard)
                    continue
                following = next(waiting, None)
                if following is not None:
                    submit(worker, following)
                yield outcome
        for pool in pools:  # nothing is left to do: they end by themselves
            pool.shutdown(wait=True)


def use_one_thread() -> None:
    """Makes this process a worker: one thread in PyTorch, one in the tokenizer."""
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def _start_worker(
    folder: str, settings: ShardSettings, receiver: Connection, parts: tuple[type, type]
) -> None:
    global _encoder, _settings
    use_one_thread()
    with following_parent(receiver, folder):
        _encoder, _settings = SentenceEncoder.from_pretrained(folder), settings


def _encode(shard: Shard) -> Outcome:
    return encode_shard(_encoder, shard, _settings)
