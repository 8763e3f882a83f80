"""Other programs read the shards directly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow.parquet as parquet
import pytest

from genpool import SentenceEncoder
from genpool.jobs.bulk import BulkOptions, encode_bulk
from tests.helpers.bulk_runs import sentence, write_texts

ROWS = 23


@pytest.fixture(params=["float32", "float16", "int8"])
def shards(request, sentence_encoder: SentenceEncoder, tmp_path: Path) -> tuple[Path, np.ndarray]:
    """A folder of three shards, and the vectors that it should hold."""
    write_texts(tmp_path / "in", files=1, rows=ROWS)
    options = BulkOptions(shard_rows=10, vectors=request.param, columns=("text",))
    encode_bulk(sentence_encoder, [tmp_path / "in"], tmp_path / "out", options, show_progress=False)
    vectors = sentence_encoder.encode([sentence(row) for row in range(ROWS)])
    if request.param == "int8":
        scales = np.abs(vectors).max(axis=1, keepdims=True) / 127
        return tmp_path / "out", np.round(vectors / scales)
    return tmp_path / "out", vectors


def require_equal(vectors: np.ndarray, expected: np.ndarray) -> None:
    assert vectors.shape == expected.shape
    # Half a step of float16 or of an integer, where rounding could go either way.
    largest = max(1.0, float(np.abs(expected).max()))
    assert np.abs(vectors.astype(np.float64) - expected).max() <= 1e-3 * largest


def test_pyarrow(shards: tuple[Path, np.ndarray]) -> None:
    column = parquet.read_table(shards[0])["vector"].combine_chunks()
    dim = shards[1].shape[1]
    require_equal(column.flatten().to_numpy(zero_copy_only=False).reshape(-1, dim), shards[1])


def test_pandas(shards: tuple[Path, np.ndarray]) -> None:
    frame = pandas.read_parquet(shards[0])
    assert frame["id"].tolist() == [f"in/000.txt:{row}" for row in range(1, ROWS + 1)]
    require_equal(np.stack(frame["vector"].to_list()), shards[1])


def test_polars(shards: tuple[Path, np.ndarray]) -> None:
    frame = polars.read_parquet(shards[0] / "*.parquet")
    require_equal(np.array(frame["vector"].to_list()), shards[1])


def test_duckdb(shards: tuple[Path, np.ndarray]) -> None:
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql(f"select vector from '{shards[0]}/*.parquet' order by filename").fetchall()
    require_equal(np.array([row[0] for row in rows]), shards[1])


def test_faiss(shards: tuple[Path, np.ndarray]) -> None:
    faiss = pytest.importorskip("faiss")
    column = parquet.read_table(shards[0])["vector"].combine_chunks()
    dim = shards[1].shape[1]
    vectors = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, dim).astype(np.float32)
    index = faiss.IndexFlatL2(dim)
    index.add(vectors)
    distances, _ = index.search(vectors, 1)
    assert np.abs(distances).max() < 1e-3 * max(1.0, float((shards[1] ** 2).sum(axis=1).max()))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of that package and what it loads
def test_lancedb(shards: tuple[Path, np.ndarray], tmp_path: Path) -> None:
    lancedb = pytest.importorskip("lancedb")
    table = parquet.read_table(shards[0])
    rows = lancedb.connect(tmp_path / "lance").create_table("rows", table).to_arrow()
    require_equal(np.array(rows["vector"].to_pylist(), np.float32), shards[1])
