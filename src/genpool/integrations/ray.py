"""Ray: bulk encoding on a cluster, and the encoder as a class for Ray Data (extra `ray`).

A shard is a task on one CPU. Ray runs it again if its process or its machine dies.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from genpool.errors import GenpoolError, InputError, require_extra
from genpool.inference.quick import QuickEncoder
from genpool.integrations.bulk.engines import MAX_DEATHS, too_many_deaths, use_one_thread
from genpool.integrations.bulk.inputs import Shard
from genpool.integrations.bulk.shard import Outcome, ShardSettings, encode_shard
from genpool.integrations.load_encoder import FolderBytes
from genpool.model import SentenceEncoder
from genpool.saving.storage import CONFIG
from genpool.tensors.modules import require_positive

__all__ = ["TextEncoder", "encode_on_ray"]

#: memory of the object store of a Ray of our own: only models and results pass through it
OBJECT_STORE_BYTES = 200 * 2**20
#: the model that this process has loaded, by its config, which has the checksums of the other files
_loaded: dict[bytes, SentenceEncoder] = {}


def encode_on_ray(
    encoder: SentenceEncoder,
    settings: ShardSettings,
    shards: list[Shard],
    workers: int | None = None,
    address: str | None = None,
) -> Iterator[Outcome]:
    """Yields the outcome of every shard, in any order: an engine of `encode_bulk`.

    The machines of the cluster at the address ("10.0.0.1:6379"; None: of a Ray on this machine,
    which ends with the run) read and write the files: all of them must have genpool, and a disk
    with inputs and output under the same path.
    """
    require_positive(workers=1 if workers is None else workers)
    if not shards:  # nothing to do: Ray need not start
        return
    with ray_session(address) as ray:
        task = ray.remote(num_cpus=1, max_retries=MAX_DEATHS - 1)(encode_task)
        model, waiting = ray.put(FolderBytes(encoder)), iter(shards)
        running = {
            task.remote(model, shard, settings): shard
            for shard in islice(waiting, worker_count(ray, workers))
        }
        while running:
            [finished], _ = ray.wait(list(running), num_returns=1)
            shard = running.pop(finished)
            try:
                outcome: Outcome = ray.get(finished)
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, GenpoolError):
                    raise error.cause from None
                raise GenpoolError(f"{shard.name} could not be encoded: {error.cause!r}") from error
            except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError) as error:
                raise too_many_deaths(shard) from error
            except ray.exceptions.RayError as error:
                raise GenpoolError(f"{shard.name} could not be encoded by Ray: {error}") from error
            if (following := next(waiting, None)) is not None:
                running[task.remote(model, following, settings)] = following
            yield outcome


@contextmanager
def ray_session(address: str | None = None) -> Iterator[Any]:
    """Connects to a cluster, or starts a Ray that ends with the block; yields the module `ray`."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray 2.60 warns of a change of its own that does not concern CPUs.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    with require_extra("the engine ray", "ray"):
        import ray
    if ray.is_initialized():  # by the caller: the connection stays open
        yield ray
        return
    try:
        ray.init(
            address=address or "local",
            include_dashboard=None if address else False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            object_store_memory=None if address else OBJECT_STORE_BYTES,
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise InputError(
            f"there is no Ray cluster at {address!r} that can be joined: {error}; start one with "
            "`ray start --head` and give its address, host:port, or leave --address out."
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def worker_count(ray: Any, workers: int | None) -> int:
    """Returns the number of workers, by default the CPUs of the cluster but one."""
    cpus = int(ray.cluster_resources().get("CPU", 0))
    count = workers or max(1, cpus - 1)
    if count > cpus:  # some would wait for ever
        raise InputError(f"the cluster has {cpus} CPUs for {count} workers; expected one each.")
    return count


def encode_task(model: FolderBytes, shard: Shard, settings: ShardSettings) -> Outcome:
    """Encodes a shard in a process of Ray, which loads the model for its first one."""
    key = model.files[CONFIG]
    if key not in _loaded:
        use_one_thread()
        _loaded.clear()
        _loaded[key] = model.load()
    return encode_shard(_loaded[key], shard, settings)


class TextEncoder:
    """Adds the vectors of a column of texts to every batch; each actor has the model once.

    Leave CPUs free for reading and writing: with an actor on every CPU, Ray Data has none for its
    other tasks and makes no progress.

    Args:
        model: a saved folder. Default: None, the encoder inside the package.
        column: the column of texts. Default: "text".
        vector: the column that is added. Default: "vector".
        int8: round the weights to 8 bits. Default: False.
        normalize: scale every vector to length 1. Default: False.

    Example:
        >>> import ray
        >>> ray.data.read_parquet("news/").map_batches(
        ...     TextEncoder, concurrency=2, num_cpus=1, fn_constructor_kwargs={"column": "body"}
        ... ).write_parquet("vectors/")
    """

    def __init__(
        self,
        model: str | Path | None = None,
        column: str = "text",
        vector: str = "vector",
        int8: bool = False,
        normalize: bool = False,
    ) -> None:
        torch.set_num_threads(1)
        self.column, self.vector, self.normalize = column, vector, normalize
        self._encoder = QuickEncoder(SentenceEncoder.from_pretrained(model), int8=int8)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Returns the batch, a dict of columns, with the vectors (rows, output_dim) added."""
        texts = [str(text) for text in batch[self.column]]
        vectors = self._encoder.encode(texts, normalize_embeddings=self.normalize)
        return {**batch, self.vector: vectors}
