"""Other programs read the shards directly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow.parquet as parquet
import pytest

from genpool import SentenceEncoder
from genpool.integrations.bulk import BulkOptions, encode_bulk
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


def with_pyarrow(folder: Path) -> np.ndarray:
    column = parquet.read_table(folder)["vector"].combine_chunks()
    return column.flatten().to_numpy(zero_copy_only=False).reshape(ROWS, -1)


def with_pandas(folder: Path) -> np.ndarray:
    frame = pandas.read_parquet(folder)
    assert frame["id"].tolist() == [f"in/000.txt:{row}" for row in range(1, ROWS + 1)]
    return np.stack(frame["vector"].to_list())


def with_polars(folder: Path) -> np.ndarray:
    return np.array(polars.read_parquet(folder / "*.parquet")["vector"].to_list())


def with_duckdb(folder: Path) -> np.ndarray:
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql(f"select vector from '{folder}/*.parquet' order by filename").fetchall()
    return np.array([row[0] for row in rows])


@pytest.mark.parametrize("read", [with_pyarrow, with_pandas, with_polars, with_duckdb])
def test_other_programs_read_the_vectors(
    shards: tuple[Path, np.ndarray], read: Callable[[Path], np.ndarray]
) -> None:
    folder, expected = shards
    vectors = read(folder)
    assert vectors.shape == expected.shape
    # Half a step of float16 or of an integer, where rounding could go either way.
    largest = max(1.0, float(np.abs(expected).max()))
    assert np.abs(vectors.astype(np.float64) - expected).max() <= 1e-3 * largest
