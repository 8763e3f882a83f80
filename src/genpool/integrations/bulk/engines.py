"""What runs shards: an engine takes them one by one and yields their outcomes in any order.

`LocalEngine` uses worker processes of this machine, each with one thread. A process that dies takes
only its shard with it: another one is started in its place and does that shard again.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.connection import Connection

import torch

from genpool.errors import GenpoolError, InputError
from genpool.inference.workers import following_parent, model_folder
from genpool.integrations.bulk.inputs import Shard
from genpool.integrations.bulk.shard import Outcome, ShardSettings, encode_shard
from genpool.model import SentenceEncoder

#: encodes shards with a model; GenpoolError if one cannot be encoded or written
Engine = Callable[[SentenceEncoder, ShardSettings, Iterable[Shard]], Iterator[Outcome]]
#: times that a worker may die over the same shard
MAX_DEATHS = 5

#: the model of a worker process, and the settings of its run
_encoder: SentenceEncoder
_settings: ShardSettings


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
            yield from _run_processes(encoder, settings, iter(shards), self.workers)
            return
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # as in all workers: the same bytes
        try:
            for shard in shards:
                yield encode_shard(encoder, shard, settings)
        finally:
            torch.set_num_threads(threads)


def _run_processes(
    encoder: SentenceEncoder, settings: ShardSettings, shards: Iterator[Shard], workers: int
) -> Iterator[Outcome]:
    context, deaths = get_context("spawn"), Counter[str]()
    running: dict[Future[Outcome], tuple[int, Shard]] = {}
    pools: dict[int, ProcessPoolExecutor] = {}  # of one process each
    with model_folder() as folder:
        encoder.save_pretrained(folder)
        receiver, sender = context.Pipe(duplex=False)
        arguments = str(folder), encoder.plugins, settings, receiver

        def submit(worker: int, shard: Shard) -> None:
            if worker not in pools:
                pools[worker] = ProcessPoolExecutor(1, context, _start_worker, arguments)
            running[pools[worker].submit(_encode, shard)] = worker, shard

        try:
            for worker, shard in zip(range(workers), shards, strict=False):
                submit(worker, shard)
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    worker, shard = running.pop(future)
                    try:
                        outcome = future.result()
                    except BrokenProcessPool:
                        deaths[shard.name] += 1
                        if deaths[shard.name] >= MAX_DEATHS:
                            raise GenpoolError(too_many_deaths(shard)) from None
                        pools.pop(worker).shutdown(wait=False)
                        submit(worker, shard)
                        continue
                    if (following := next(shards, None)) is not None:
                        submit(worker, following)
                    yield outcome
        finally:
            if running:  # an error, or nobody wants the rest: busy workers exit at once
                sender.close()
            for pool in pools.values():
                pool.shutdown(wait=True, cancel_futures=True)
            sender.close()
            receiver.close()


def use_one_thread() -> None:
    """Makes this process a worker: one thread in PyTorch, one in the tokenizer."""
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def _start_worker(
    folder: str, plugins: list[str], settings: ShardSettings, receiver: Connection
) -> None:
    global _encoder, _settings
    use_one_thread()
    with following_parent(receiver, folder):
        _encoder, _settings = SentenceEncoder.from_pretrained(folder, plugins=plugins), settings


def _encode(shard: Shard) -> Outcome:
    return encode_shard(_encoder, shard, _settings)
