"""Nodes of a Ray cluster that vanish while shards are encoded."""

from __future__ import annotations

import os
import subprocess
import time

from benchmarks.faults.bulk_kills import END_SECONDS, Faults, Job, environment
from tests.helpers.bulk_runs import problems, shard_bytes

STORE_BYTES = 80 * 2**20


def kill_nodes(job: Job, out: str, kills: int) -> Faults:
    """Kills nodes of a cluster on this machine, one after the other, and adds new ones.

    Args:
        job: what to encode.
        out: the name of the output folder.
        kills: how many nodes.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    faults, folder = Faults(runs=1), job.place / out
    # The head has no CPU for tasks: it must not be the one that does all the work.
    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE_BYTES}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        nodes = [cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES) for _ in range(2)]
        cluster.wait_for_nodes()
        options = ("--engine", "ray", "--workers", "2", "--address", cluster.address)
        process = subprocess.Popen(
            job.command(out, *options),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment(),
        )
        while process.poll() is None and faults.kills < kills:
            before = len(shard_bytes(folder)) if folder.is_dir() else 0
            _wait_for_shards(process, job, out, before + 3)
            if process.poll() is not None:
                break
            cluster.remove_node(nodes.pop(0), allow_graceful=False)
            faults.kills += 1
            nodes.append(cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES))
        said, _ = process.communicate(timeout=END_SECONDS)
        if process.returncode != 0:
            faults.problems.append(f"exit code {process.returncode}: {said[-500:]}")
    finally:
        cluster.shutdown()
    faults.problems += problems(folder, job.ids, job.expected)
    return faults


def _wait_for_shards(process: subprocess.Popen[str], job: Job, out: str, count: int) -> None:
    folder = job.place / out
    while process.poll() is None:
        if folder.is_dir() and len(list(folder.glob("part-*.parquet"))) >= count:
            return
        time.sleep(0.05)
