"""How long a search of a million sentences takes, beside one matrix product over the same file.

    python -m benchmarks.results_pages.search_million            prints the figures
    python -m benchmarks.results_pages.search_million --write    also writes results/search.md

The vectors are random and lie in a temporary folder (1.5 GB at a time), which is removed at the
end. Files are in the page cache: what is measured is the search, not the disk.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.pages import markdown_table, page_path
from benchmarks.results_pages.search_engines_page import HEADING
from benchmarks.speed.harness import interleaved, ratios
from genpool import __version__
from genpool.search import ModelReference, SearchIndex, index_writer

ROWS, DIM, SEED, TOP, ROUNDS = 1_000_000, 384, 0, 10, 7
QUERIES = 64  # in the search of several at once
CHUNK_ROWS = 10_000
HEADER = [
    "vectors",
    "product",
    "search, one query",
    "ratio",
    f"a query, {QUERIES} at once",
    "memory",
    "writing",
]


class Figures(NamedTuple):
    """Seconds (medians of the rounds), the ratio to the product, and memory in MB."""

    writing: float
    product: float
    one: float
    ratio: float
    spread: tuple[float, float]
    one_of_several: float
    memory: float


def write(folder: Path, normalized: bool) -> float:
    """Returns the seconds to write the index, without those to draw the vectors."""
    random = np.random.default_rng(SEED)
    seconds = 0.0
    began = time.perf_counter()
    with index_writer(folder, DIM, ModelReference("random")) as add:
        for first in range(0, ROWS, CHUNK_ROWS):
            seconds += time.perf_counter() - began
            vectors = random.standard_normal((CHUNK_ROWS, DIM), np.float32)
            if normalized:
                vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            sentences = [f"sentence number {row}" for row in range(first, first + CHUNK_ROWS)]
            began = time.perf_counter()
            add(sentences, vectors)
    return seconds + time.perf_counter() - began


def measure(folder: Path, normalized: bool) -> Figures:
    writing = write(folder, normalized)
    index = SearchIndex.open(folder)
    mapped: NDArray[np.float32] = np.load(folder / "vectors.npy", mmap_mode="r")
    queries = np.random.default_rng(SEED + 1).standard_normal((QUERIES, DIM)).astype(np.float32)
    seconds = interleaved(
        {
            "product": lambda: np.dot(mapped, queries[0]),
            "one": lambda: index.search(queries[:1], TOP),
        },
        ROUNDS,
    )
    began = time.perf_counter()
    index.search(queries, TOP)
    one_of_several = (time.perf_counter() - began) / QUERIES
    tracemalloc.start()
    index.search(queries[:1], TOP)
    memory = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    ratio, spread = ratios(seconds["one"], seconds["product"])
    product, one = (statistics.median(seconds[name]) for name in ("product", "one"))
    return Figures(writing, product, one, ratio, spread, one_of_several, memory)


def row(name: str, figures: Figures) -> list[str]:
    low, high = figures.spread
    return [
        name,
        f"{figures.product:.3f} s",
        f"{figures.one:.3f} s",
        f"**{figures.ratio:.2f}** ({low:.2f} to {high:.2f})",
        f"{figures.one_of_several:.3f} s",
        f"{figures.memory:.1f} MB",
        f"{figures.writing:.1f} s",
    ]


def report() -> str:
    rows = []
    for name, normalized in (("of length 1 (`--normalize`)", True), ("of any length", False)):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(row(name, measure(Path(folder) / "index", normalized)))
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    threads = os.environ.get("OMP_NUM_THREADS", "not set")
    return "\n".join(
        [
            "# Search of a million sentences",
            "",
            "    OMP_NUM_THREADS=1 python -m benchmarks.results_pages.search_million --write",
            "",
            f"genpool {__version__}, NumPy {np.__version__}, Python {platform.python_version()}, "
            f"{platform.machine()}; seed {SEED}; OMP_NUM_THREADS {threads}.",
            "",
            f"{ROWS:,} random vectors of {DIM} dimensions, the best {TOP} rows of each query, with",
            "their sentences. The product is one `np.dot` of the mapped `vectors.npy` and a query:",
            "what any exact search must do at least. The ratio is search to product, turn by turn,",
            f"the median of {ROUNDS} rounds and their range. The files are in the page cache.",
            "",
            markdown_table(HEADER, rows),
            "",
            "Memory is the peak of what a search of one query allocates. The mapped file comes on",
            "top as pages that the system drops when it needs room: the process had at most",
            f"{resident:.1f} GB resident, the file counted twice, for product and search.",
            "Writing is `index_writer` alone, without the model. Seconds depend on the machine;",
            "the ratio does so less.",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Seconds and memory of a search.")
    parser.add_argument("--write", action="store_true", help="write results/search.md")
    options = parser.parse_args()
    text = report()
    print(text)
    if options.write:
        page = page_path("search")
        engines = page.read_text(encoding="utf-8").partition(HEADING)  # of another script
        page.write_text(text + "\n" + "".join(engines[1:]), encoding="utf-8")


if __name__ == "__main__":
    main()
