"""The comparison of search engines: what it finds, its recall, and the memory that it counts."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.results_pages import search_engines, search_engines_page

ROWS, DIM, QUERIES = 2000, 16, 5
LIBRARIES = {"genpool": "faiss", "hnsw": "faiss", "lancedb": "lancedb"}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    random = np.random.default_rng(0)
    for name, rows in (("rows", ROWS), ("queries", QUERIES)):
        np.save(tmp_path / f"{name}.npy", random.normal(size=(rows, DIM)).astype(np.float32))
    return tmp_path / "rows.npy", tmp_path / "queries.npy"


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("name", search_engines.ENGINES)
def test_an_engine_finds_the_rows_of_the_largest_cosines(
    name: str, files: tuple[Path, Path]
) -> None:
    pytest.importorskip(LIBRARIES[name], reason=f"{LIBRARIES[name]} is not installed")
    result = search_engines.run(name, files[0], ROWS, DIM, files[1])
    rows, queries = np.load(files[0]), np.load(files[1])
    cosines = queries @ (rows / np.linalg.norm(rows, axis=1, keepdims=True)).T
    best = np.argsort(-cosines, axis=1)[:, : search_engines.TOP].tolist()
    most_exact = list(result["answers"].values())[0 if name == "genpool" else -1]
    found = search_engines_page.recall(most_exact["rows"], best)
    assert found == 1 if name == "genpool" else found > 0.9
    assert result["disk"] > 0 and result["memory"] >= 0 and result["build_cpu"] > 0


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_is_counted_from_the_loaded_vectors_on() -> None:
    larger = np.ones(50_000_000, np.float32)  # 0.2 GB, freed before the count begins
    del larger
    before = search_engines._reset_peak()
    smaller = np.ones(25_000_000, np.float32)
    assert search_engines._memory("VmHWM") - before == pytest.approx(0.1, abs=0.02)
    assert len(smaller) == 25_000_000


def test_recall_is_the_share_of_the_exact_hits() -> None:
    assert search_engines_page.recall([[1, 2, 3], [4, 5, 6]], [[1, 2, 9], [6, 5, 4]]) == 5 / 6
