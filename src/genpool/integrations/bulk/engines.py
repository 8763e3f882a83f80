"""What runs shards: an engine yields their outcomes in any order; here, processes of this machine.

Each process has one thread. If it dies, another one does its shard again.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.connection import Connection

import torch

from genpool.errors import GenpoolError
from genpool.inference.workers import following_parent, model_folder
from genpool.integrations.bulk.inputs import Shard
from genpool.integrations.bulk.shard import Outcome, ShardSettings, encode_shard
from genpool.model import SentenceEncoder
from genpool.tensors.modules import require_positive, torch_threads

#: encodes shards with a model; GenpoolError if one cannot be encoded or written
Engine = Callable[[SentenceEncoder, ShardSettings, list[Shard]], Iterator[Outcome]]
#: times that a worker may die over the same shard
MAX_DEATHS = 5

#: the model of a worker process
_encoder: SentenceEncoder


def too_many_deaths(shard: Shard) -> GenpoolError:
    """Returns the error for a shard over which MAX_DEATHS workers have died."""
    first = shard.start.row + 1
    return GenpoolError(
        f"{MAX_DEATHS} worker processes died over {shard.name} ({shard.path}, rows {first:,} to "
        f"{first + shard.rows - 1:,}): killed, or out of memory? Finished shards are kept; try "
        "fewer workers or a smaller --batch-size, and run the command again."
    )


def encode_locally(
    encoder: SentenceEncoder, settings: ShardSettings, shards: list[Shard], workers: int = 1
) -> Iterator[Outcome]:
    """Encodes shards with processes of this machine; with one worker, in this process itself."""
    require_positive(workers=workers)
    if workers == 1:
        with torch_threads(1):  # as in all workers: the same bytes
            yield from (encode_shard(encoder, shard, settings) for shard in shards)
        return
    context, deaths = get_context("spawn"), Counter[str]()
    running: dict[Future[Outcome], tuple[int, Shard]] = {}
    pools: dict[int, ProcessPoolExecutor] = {}  # of one process each
    with model_folder() as folder:
        encoder.save_pretrained(folder)
        receiver, sender = context.Pipe(duplex=False)
        arguments = str(folder), encoder.plugins, receiver

        def submit(worker: int, shard: Shard) -> None:
            if worker not in pools:
                pools[worker] = ProcessPoolExecutor(1, context, _start_worker, arguments)
            running[pools[worker].submit(_encode, shard, settings)] = worker, shard

        waiting = iter(shards)
        try:
            for worker, shard in zip(range(workers), waiting, strict=False):
                submit(worker, shard)
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    worker, shard = running.pop(future)
                    try:
                        outcome = future.result()
                    except BrokenProcessPool:
                        deaths[shard.name] += 1
                        if deaths[shard.name] >= MAX_DEATHS:
                            raise too_many_deaths(shard) from None
                        pools.pop(worker).shutdown(wait=False)
                        submit(worker, shard)
                        continue
                    if (following := next(waiting, None)) is not None:
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


def _start_worker(folder: str, plugins: list[str], receiver: Connection) -> None:
    global _encoder
    use_one_thread()
    with following_parent(receiver, folder):
        _encoder = SentenceEncoder.from_pretrained(folder, plugins=plugins)


def _encode(shard: Shard, settings: ShardSettings) -> Outcome:
    return encode_shard(_encoder, shard, settings)
