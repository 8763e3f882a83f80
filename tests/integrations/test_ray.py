"""Ray encodes what this process encodes: on several nodes, and in a pipeline of Ray Data."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genpool import SentenceEncoder
from genpool.errors import DataError, InputError
from genpool.integrations import ray as integration
from genpool.integrations.bulk import BulkOptions, BulkSummary, encode_bulk
from genpool.integrations.load_encoder import FolderBytes
from genpool.integrations.ray import (
    TextEncoder,
    encode_on_ray,
    encode_task,
    ray_session,
    worker_count,
)
from tests.helpers.bulk_runs import problems, sentence, shard_bytes, write_texts

# Warnings of Ray and of what it loads are not ours.
pytestmark = pytest.mark.filterwarnings("ignore")

SMALL = BulkOptions(shard_rows=10, batch_size=4)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A cluster of three nodes of its own on this machine, of one CPU each."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    Cluster = pytest.importorskip("ray.cluster_utils").Cluster  # noqa: N806

    node = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    for _ in range(2):
        cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    cluster.wait_for_nodes()
    yield cluster.address
    cluster.shutdown()


def run(encoder: SentenceEncoder, source: Path, out: Path, **options: Any) -> BulkSummary:
    """Encodes a file or a folder on Ray."""
    engine = partial(encode_on_ray, **options)
    return encode_bulk(encoder, [source], out, SMALL, engine, show_progress=False)


def test_a_cluster_writes_the_bytes_of_one_process_or_says_why_not(
    sentence_encoder: SentenceEncoder, tmp_path: Path, address: str
) -> None:
    source, calm, out = tmp_path / "in", tmp_path / "calm", tmp_path / "out"
    ids = write_texts(source, files=3, rows=25)
    encode_bulk(sentence_encoder, [source], calm, SMALL, show_progress=False)
    assert run(sentence_encoder, source, out, address=address).rows == 75
    assert problems(out, ids, shard_bytes(calm)) == []
    # Nothing is left to do: Ray is not even asked.
    assert run(sentence_encoder, source, out, address="nobody:1").rows == 75
    with ray_session(address) as ray:
        assert worker_count(ray, None) == 2  # one CPU stays free
    with pytest.raises(InputError, match="3 CPUs for 4 workers"):
        run(sentence_encoder, source, tmp_path / "new", workers=4, address=address)
    (tmp_path / "a.txt").write_bytes(b"a dog\ncaf\xe9\n")
    with pytest.raises(DataError, match=r"a\.txt, line 2: is not UTF-8"):
        run(sentence_encoder, tmp_path / "a.txt", tmp_path / "bad", workers=1, address=address)


def test_the_encoder_is_an_actor_class_of_ray_data(
    sentence_encoder: SentenceEncoder, tmp_path: Path, address: str
) -> None:
    sentence_encoder.save_pretrained(tmp_path / "model")
    texts = [sentence(row) for row in range(20)]
    with ray_session(address) as ray:
        ray.data.DataContext.get_current().enable_progress_bars = False
        rows: list[dict[str, Any]] = (
            ray.data.from_items([{"text": text} for text in texts])
            .map_batches(
                TextEncoder,
                concurrency=1,
                num_cpus=1,
                batch_size=8,
                fn_constructor_kwargs={"model": str(tmp_path / "model"), "normalize": True},
            )
            .take_all()
        )
    expected = sentence_encoder.encode(texts, normalize_embeddings=True)
    by_text = {row["text"]: np.asarray(row["vector"]) for row in rows}
    assert len(rows) == 20
    for text, vector in zip(texts, expected, strict=True):
        assert np.abs(by_text[text] - vector).max() < 1e-6


def test_a_task_loads_the_model_once(
    sentence_encoder: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, loaded = FolderBytes(sentence_encoder), []

    def load(files: FolderBytes) -> SentenceEncoder:
        loaded.append(files)
        return sentence_encoder

    def engine(encoder, settings, shards):
        """The engine without Ray: the tasks are called here."""
        return (encode_task(model, shard, settings) for shard in shards)

    monkeypatch.setattr(integration, "_loaded", {})
    monkeypatch.setattr(FolderBytes, "load", load)
    source, calm, out = [tmp_path / "in"], tmp_path / "calm", tmp_path / "out"
    ids = write_texts(tmp_path / "in", files=1, rows=25)
    encode_bulk(sentence_encoder, source, calm, SMALL, show_progress=False)
    encode_bulk(sentence_encoder, source, out, SMALL, engine, show_progress=False)
    assert len(loaded) == 1
    assert problems(out, ids, shard_bytes(calm)) == []
