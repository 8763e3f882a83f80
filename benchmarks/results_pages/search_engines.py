"""Engines for a search of many rows: which finds how much of the exact result, and how fast.

    python -m benchmarks.results_pages.search_engines ENGINE ROWS.npy N DIM QUERIES.npy > R.json
    python -m benchmarks.results_pages.search_engines_page *.json --write

Each engine gets the same vectors of length 1 (the first rows and dimensions of a file that `genpool
encode` wrote) and the same queries, in a process of its own, so that its memory can be told apart.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genpool.search import ModelReference, SearchIndex, build_lists, index_writer
from genpool.search import approximate as lists
from genpool.tensors.arrays import unit_rows

TOP = 10
#: how many lists, or candidates, an engine reads: the last of them is the most exact
PROBES = (16, 32, 64, 128)
#: LanceDB: candidates for each hit whose distance is computed exactly; the second with all PROBES
REFINE, REFINE_MORE = 4, 40
CHUNK_ROWS = 10_000

Vectors = NDArray[np.float32]
Search = Callable[[Vectors], NDArray[np.int64]]


def load(path: Path, rows: int, dim: int) -> Vectors:
    """Returns the first rows and dimensions of an .npy file, of length 1."""
    stored = np.load(path, mmap_mode="r")
    vectors = np.empty((rows, dim), np.float32)
    for first in range(0, rows, CHUNK_ROWS):
        vectors[first : first + CHUNK_ROWS] = unit_rows(
            np.asarray(stored[first : min(rows, first + CHUNK_ROWS), :dim])
        )
    return vectors


def genpool_engine(vectors: Vectors, folder: Path) -> tuple[float, list[tuple[str, Search]]]:
    """The folder of `genpool encode`, with lists; also searched exactly."""
    with index_writer(folder / "index", vectors.shape[1], ModelReference("none")) as add:
        for first in range(0, len(vectors), CHUNK_ROWS):
            part = vectors[first : first + CHUNK_ROWS]
            add(["" for _ in part], part)
    began = time.perf_counter()
    build_lists(folder / "index")
    seconds = time.perf_counter() - began
    index = SearchIndex.open(folder / "index")

    def search(probes: int, exact: bool, queries: Vectors) -> NDArray[np.int64]:
        lists.PROBES = probes
        hits = index.search(queries, TOP, exact=exact)
        return np.array([[hit.row for hit in found] for found in hits])

    kinds: list[tuple[str, Search]] = [("all rows", lambda queries: search(1, True, queries))]
    for probes in PROBES:
        kinds.append((f"{probes} lists", lambda queries, n=probes: search(n, False, queries)))  # type: ignore[misc]
    return seconds, kinds


def hnsw_engine(vectors: Vectors, folder: Path) -> tuple[float, list[tuple[str, Search]]]:
    """FAISS's graph, with 8-bit codes."""
    faiss: Any = import_module("faiss")
    began = time.perf_counter()
    index = faiss.index_factory(vectors.shape[1], "HNSW32,SQ8", faiss.METRIC_INNER_PRODUCT)
    index.train(vectors[:: max(1, len(vectors) // 50_000)])
    for first in range(0, len(vectors), CHUNK_ROWS):
        index.add(vectors[first : first + CHUNK_ROWS])
    faiss.write_index(index, str(folder / "hnsw.faiss"))
    seconds = time.perf_counter() - began

    def search(effort: int, queries: Vectors) -> NDArray[np.int64]:
        parameters = faiss.SearchParametersHNSW(efSearch=effort)
        rows: NDArray[np.int64] = index.search(queries, TOP, params=parameters)[1]
        return rows

    kinds: list[tuple[str, Search]] = []
    for effort in (32, 64, 128):
        kinds.append((f"efSearch {effort}", lambda queries, n=effort: search(n, queries)))  # type: ignore[misc]
    return seconds, kinds


def lance_engine(vectors: Vectors, folder: Path) -> tuple[float, list[tuple[str, Search]]]:
    """A table of LanceDB with IVF and product quantization, its usual index."""
    import lancedb
    import pyarrow as arrow
    from lancedb.index import IvfPq

    dim = vectors.shape[1]
    schema = arrow.schema([("row", arrow.int64()), ("vector", arrow.list_(arrow.float32(), dim))])

    def batches() -> Any:
        for first in range(0, len(vectors), CHUNK_ROWS):
            part = vectors[first : first + CHUNK_ROWS]
            flat = arrow.array(part.ravel(), arrow.float32())
            rows = arrow.array(np.arange(first, first + len(part)))
            columns = [rows, arrow.FixedSizeListArray.from_arrays(flat, dim)]
            yield arrow.record_batch(columns, schema=schema)

    table: Any = lancedb.connect(folder).create_table(
        "rows", arrow.RecordBatchReader.from_batches(schema, batches())
    )
    began = time.perf_counter()
    lists = round(len(vectors) ** 0.5)
    config = IvfPq(distance_type="cosine", num_partitions=lists, num_sub_vectors=dim // 8)
    table.create_index("vector", config=config)
    seconds = time.perf_counter() - began

    def search(probes: int, refine: int, queries: Vectors) -> NDArray[np.int64]:
        found = []
        for query in queries:
            asked = table.search(query).distance_type("cosine").nprobes(probes)
            asked = asked.refine_factor(refine).limit(TOP).select(["row", "_distance"])
            found.append(asked.to_arrow()["row"].to_pylist())
        return np.array(found)

    kinds: list[tuple[str, Search]] = []
    for probes, refine in (*((probes, REFINE) for probes in PROBES), (PROBES[-1], REFINE_MORE)):
        kind = f"{probes} lists, {refine * TOP} refined"
        kinds.append((kind, lambda queries, n=probes, m=refine: search(n, m, queries)))  # type: ignore[misc]
    return seconds, kinds


ENGINES = {"genpool": genpool_engine, "hnsw": hnsw_engine, "lancedb": lance_engine}


def run(name: str, source: Path, rows: int, dim: int, queries: Path) -> dict[str, Any]:
    """Returns seconds, CPU seconds and memory of an engine, and the rows that it finds."""
    vectors, asked = load(source, rows, dim), load(queries, len(np.load(queries)), dim)
    resident = _reset_peak()
    with tempfile.TemporaryDirectory(dir=source.parent) as folder:
        cpu = time.process_time()
        build, kinds = ENGINES[name](vectors, Path(folder))
        build_cpu, building = time.process_time() - cpu, _memory("VmHWM")
        answers = {}
        for kind, search in kinds:
            search(asked[:5])
            one, one_cpu = time.perf_counter(), time.process_time()
            found = np.concatenate([search(asked[row : row + 1]) for row in range(len(asked))])
            answers[kind] = {
                "seconds": (time.perf_counter() - one) / len(asked),
                "cpu": (time.process_time() - one_cpu) / len(asked),
                "rows": found.tolist(),
            }
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return {
        "engine": name,
        "vectors": rows,
        "dim": dim,
        "queries": len(asked),
        "build": build,
        "build_cpu": build_cpu,
        "memory": building - resident,
        "disk": size,
        "answers": answers,
    }


def _reset_peak() -> float:
    """Forgets the peak of loading the vectors; returns the memory of this process now, in GB."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _memory("VmRSS")


def _memory(name: str) -> float:
    """Returns a figure of the kernel about this process in GB: VmRSS now, VmHWM its peak."""
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith(name)) / 1e6


def main() -> None:
    name, source, rows, dim, queries = sys.argv[1:]
    print(json.dumps(run(name, Path(source), int(rows), int(dim), Path(queries))))


if __name__ == "__main__":
    main()
