"""The Ray engine of bulk encoding: shards are tasks, each on one CPU with one thread.

A task reads its slice, encodes it and writes its file itself, so nothing large passes through Ray.
Ray runs a task again if its process or its machine dies. A process that has loaded the model keeps
it for the next task. One CPU stays free for the driver and for Ray, unless more workers are asked
for.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from genpool.errors import GenpoolError, InputError, require_extra
from genpool.jobs.bulk.engines import MAX_DEATHS, too_many_deaths, use_one_thread
from genpool.jobs.bulk.inputs import Shard
from genpool.jobs.bulk.shard import Outcome, ShardSettings, encode_shard
from genpool.sentence_encoder import SentenceEncoder

#: the files of a saved model, by name
ModelFiles = dict[str, bytes]

#: memory of the object store of a Ray of our own: only models and results pass through it
OBJECT_STORE_BYTES = 200 * 2**20
#: the model that this process has loaded, by the checksum of its files
_loaded: dict[str, SentenceEncoder] = {}


class RayEngine:
    """Encodes shards on Ray.

    The files are read and written by the machines of the cluster: inputs and output must be on a
    disk that all of them have under the same path. genpool must be installed on all of them.

    Args:
        workers: shards at the same time. Default: None, one for each CPU but one.
        address: of the cluster, such as "10.0.0.1:6379". Default: None, a Ray on this machine
            that ends with the run.

    Raises:
        InputError: workers is below 1.
    """

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"workers is {workers}; expected 1 or more.")
        self.workers, self.address = workers, address

    def __call__(
        self, encoder: SentenceEncoder, settings: ShardSettings, shards: Iterable[Shard]
    ) -> Iterator[Outcome]:
        """Yields the outcome of every shard, in any order.

        Raises:
            InputError: the cluster has too few CPUs, or there is none at the address.
            GenpoolError: a shard cannot be encoded or written.
        """
        waiting = iter(shards)
        first = next(waiting, None)
        if first is None:  # nothing to do: Ray need not start
            return
        with ray_session(self.address) as ray:
            workers = self.workers or free_cpus(ray)
            require_cpus(ray, workers)
            task = ray.remote(num_cpus=1, max_retries=MAX_DEATHS - 1)(encode_task)
            files = _model_files(encoder)
            model, checksum = ray.put(files), _checksum(files)
            running: dict[Any, Shard] = {}

            def submit(shard: Shard) -> None:
                running[task.remote(model, checksum, shard, settings)] = shard

            for shard in (first, *islice(waiting, workers - 1)):
                submit(shard)
            while running:
                [finished], _ = ray.wait(list(running), num_returns=1)
                shard = running.pop(finished)
                outcome = _outcome(ray, finished, shard)
                following = next(waiting, None)
                if following is not None:
                    submit(following)
                yield outcome


def _outcome(ray: Any, finished: Any, shard: Shard) -> Outcome:
    try:
        outcome: Outcome = ray.get(finished)
        return outcome
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, GenpoolError):
            raise cause from None
        raise GenpoolError(f"{shard.name} could not be encoded: {cause!r}") from error
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError) as error:
        raise GenpoolError(too_many_deaths(shard)) from error
    except ray.exceptions.RayError as error:
        raise GenpoolError(f"{shard.name} could not be encoded by Ray: {error}") from error


@contextmanager
def ray_session(address: str | None = None) -> Iterator[Any]:
    """Connects to a cluster, or starts a Ray that ends with the block; yields the module `ray`.

    A connection that this process has already is used and stays open.

    Raises:
        MissingExtraError: Ray is not installed.
        InputError: there is no cluster at the address.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray 2.60 warns of a change of its own that does not concern CPUs.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    with require_extra("the engine ray", "ray"):
        import ray
    if ray.is_initialized():
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


def free_cpus(ray: Any) -> int:
    """Returns the CPUs of the cluster but one, at least 1."""
    return max(1, int(ray.cluster_resources().get("CPU", 0)) - 1)


def require_cpus(ray: Any, workers: int) -> None:
    """Raises InputError if the cluster has fewer CPUs than workers: some would wait for ever."""
    cpus = int(ray.cluster_resources().get("CPU", 0))
    if workers > cpus:
        raise InputError(f"the cluster has {cpus} CPUs for {workers} workers; expected one each.")


def _model_files(encoder: SentenceEncoder) -> ModelFiles:
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        encoder.save_pretrained(model)
        return {path.name: path.read_bytes() for path in sorted(model.iterdir())}


def _checksum(files: ModelFiles) -> str:
    digest = hashlib.sha256()
    for name, data in files.items():
        digest.update(f"{name} {len(data)} ".encode() + data)
    return digest.hexdigest()


def encode_task(files: ModelFiles, checksum: str, shard: Shard, settings: ShardSettings) -> Outcome:
    """Encodes a shard in a process of Ray, which loads the model for its first one."""
    if checksum not in _loaded:
        use_one_thread()
        _loaded.clear()
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "model"
            model.mkdir()
            for name, data in files.items():
                (model / name).write_bytes(data)
            _loaded[checksum] = SentenceEncoder.from_pretrained(model)
    return encode_shard(_loaded[checksum], shard, settings)
